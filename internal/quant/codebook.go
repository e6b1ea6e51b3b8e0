package quant

import "github.com/goparity/goparity/internal/smallfloat"

// ggml's blocks of 4 bits that stand for 16 numbers. The low nibbles are the first half of a group,
// the high ones the second.
//
//	iq4_nl  d q[16]             32 elements, d·v, d a binary16, v of nonlinear
//	iq4_xs  d h s[4] q[128]     256 elements in groups of 32, (d·(s−32))·v, s of 6 bits, h the upper two
//	mxfp4   e q[16]             32 elements, 2^(e−127)·v, v an E2M1
//	nvfp4   s[4] q[32]          64 elements in groups of 16, s·v, s an E4M3 of which 0x7f is 0
var (
	IQ4_NL = &Block{"iq4_nl", 32, 18, iq4_nl, grid{2, 18, 0x00, 0xff, nonlinear[:], 1.1}}
	IQ4_XS = &Block{"iq4_xs", 256, 136, iq4_xs, grid{8, 136, 0x00, 0xff, nonlinear[:], 3}}
	MXFP4  = &Block{"mxfp4", 32, 17, mxfp4, grid{1, 17, 0xff, 0x77, e2m1[:], 1.1}}
	NVFP4  = &Block{"nvfp4", 64, 36, nvfp4, grid{4, 36, 0xff, 0x77, e2m1[:], 1.1}}
)

var nonlinear = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func coded(out []float32, q []byte, values *[16]float32, d float32) {
	high := out[len(q):]
	for i, b := range q {
		out[i] = d * values[b&15]
		high[i] = d * values[b>>4]
	}
}

func iq4_nl(dst []float32, src []byte) {
	for ; len(src) >= 18; src, dst = src[18:], dst[32:] {
		coded(dst[:32], src[2:18], &nonlinear, half(src))
	}
}

func iq4_xs(dst []float32, src []byte) {
	for ; len(src) >= 136; src, dst = src[136:], dst[256:] {
		d, high, low := half(src), u16(src[2:]), src[4:8]
		for g := range 8 {
			s := int32(low[g/2]>>(g%2*4)&15) | int32(high>>(2*g)&3<<4)
			coded(dst[32*g:32*g+32], src[8+16*g:24+16*g], &nonlinear, d*float32(s-32))
		}
	}
}

// e2m1 are the values of E2M1 in order.
var e2m1 = [15]float32{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}

// doubled are the values of E2M1 without −0, which ggml has not, times 2: its scales are halved.
var doubled = func() (t [16]float32) {
	for i, v := range smallfloat.E2M1 {
		t[i] = 2*v + 0
	}
	return t
}()

func mxfp4(dst []float32, src []byte) {
	scales := &smallfloat.F8().E8M0FNU
	for ; len(src) >= 17; src, dst = src[17:], dst[32:] {
		d := scales[src[0]] / 2
		if src[0] == 255 {
			d = 1 << 127 // ggml's scale has no NaN
		}
		coded(dst[:32], src[1:17], &doubled, d)
	}
}

// unsigned are the scales of nvfp4, halved: the sign bit is not looked at, and 0xff is a number.
var unsigned = func() (t [256]float32) {
	for i := range t {
		t[i] = smallfloat.F8().E4M3FN[i&0x7f] / 2
	}
	t[0x7f], t[0xff] = 0, 240
	return t
}()

func nvfp4(dst []float32, src []byte) {
	for ; len(src) >= 36; src, dst = src[36:], dst[64:] {
		for g := range 4 {
			coded(dst[16*g:16*g+16], src[4+8*g:12+8*g], &doubled, unsigned[src[g]])
		}
	}
}
