package quant

import (
	_ "embed"
	"math/bits"
	"sync"
)

// ggml's blocks of 256 elements whose codes choose 4 or 8 numbers at once from a grid. d is a
// binary16, s are scales of groups, k are signs: one bit an element, or 7 bits for 8 elements, of
// which an even number is negative.
//
//	iq2_xxs  d (q[4] ks)[8]                  groups of 32, ks: 4 times 7 bits of signs, 4 bits of scale
//	iq2_xs   d qk[32] s[8]                   groups of 16, qk: 9 bits of code, 7 of signs
//	iq2_s    d q[32] k[32] h[8] s[8]         groups of 16, h has two bits of each code
//	iq3_xxs  d q[64] ks[8]                   groups of 32, ks as in iq2_xxs
//	iq3_s    d q[64] h[8] k[32] s[4]         groups of 32, h has a bit of each code
//	iq1_s    d q[32] hs[8]                   groups of 32, hs: 4 times 3 bits of code, 3 of scale, sign of δ
//	iq1_m    q[32] h[16] s[8]                groups of 16, d in the upper bits of s
//
// An element is d·(s + 1/2)/4 times a number of the grid in iq2, d·(s + 1/2)/2 in iq3_xxs,
// d·(2s + 1) in iq3_s; in iq1 it is d·(2s + 1)·(number ± 1/8).
var (
	IQ2_XXS = &Block{"iq2_xxs", 256, 66, iq2_xxs, grid{}}
	IQ2_XS  = &Block{"iq2_xs", 256, 74, iq2_xs, grid{}}
	IQ2_S   = &Block{"iq2_s", 256, 82, iq2_s, grid{}}
	IQ3_XXS = &Block{"iq3_xxs", 256, 98, iq3_xxs, grid{}}
	IQ3_S   = &Block{"iq3_s", 256, 110, iq3_s, grid{}}
	IQ1_S   = &Block{"iq1_s", 256, 50, iq1_s, grid{}}
	IQ1_M   = &Block{"iq1_m", 256, 56, iq1_m, grid{}}
)

// gridData are the grids of ggml (MIT licence), as testdata/grids.py writes them: each number as
// the index of its value, 2 or 4 bits each, the first number lowest.
//
//go:embed grids.bin
var gridData []byte

// grids are the numbers of all grids, 8 or 4 for each code.
type grids struct {
	iq2xxs, iq2xs, iq2s, iq3xxs, iq3s, iq1s []float32
}

var gridsOf = sync.OnceValue(func() *grids {
	at := 0
	read := func(codes, each, width int, values ...float32) []float32 {
		out := make([]float32, codes*each)
		for i := range out {
			bit := i * width
			out[i] = values[gridData[at+bit/8]>>(bit%8)&(1<<width-1)]
		}
		at += len(out) * width / 8
		return out
	}
	two := []float32{8, 25, 43, 0}
	g := &grids{
		iq2xxs: read(256, 8, 2, two...),
		iq2xs:  read(512, 8, 2, two...),
		iq2s:   read(1024, 8, 2, two...),
		iq3xxs: read(256, 4, 4, 4, 12, 20, 28, 36, 44, 52, 62),
		iq3s:   read(512, 4, 4, 1, 3, 5, 7, 9, 11, 13, 15),
		iq1s:   read(2048, 8, 2, -1, 0, 1, 0),
	}
	return g
})

// signed writes d times the numbers, negative where a bit of k is set.
func signed(out, numbers []float32, d float32, k byte) {
	for i, v := range numbers {
		if v *= d; k>>i&1 != 0 {
			v = -v
		}
		out[i] = v
	}
}

// even returns 8 signs of 7 bits: the number of negative ones is even.
func even(k uint32) byte {
	s := byte(k & 127)
	return s | byte(bits.OnesCount8(s)&1)<<7
}

func iq2_xxs(dst []float32, src []byte) {
	grid := gridsOf().iq2xxs
	for ; len(src) >= 66; src, dst = src[66:], dst[256:] {
		d := half(src)
		for g := range 8 {
			q, ks := src[2+8*g:6+8*g], u32(src[6+8*g:])
			db := d * (0.5 + float32(ks>>28)) * 0.25
			for j, c := range q {
				signed(dst[32*g+8*j:], grid[8*int(c):][:8], db, even(ks>>(7*j)))
			}
		}
	}
}

func iq2_xs(dst []float32, src []byte) {
	grid := gridsOf().iq2xs
	for ; len(src) >= 74; src, dst = src[74:], dst[256:] {
		d, s := half(src), src[66:74]
		for j := range 32 {
			qk := u16(src[2+2*j:])
			db := d * (0.5 + float32(s[j/4]>>(j/2%2*4)&15)) * 0.25
			signed(dst[8*j:], grid[8*int(qk&511):][:8], db, even(uint32(qk>>9)))
		}
	}
}

func iq2_s(dst []float32, src []byte) {
	grid := gridsOf().iq2s
	for ; len(src) >= 82; src, dst = src[82:], dst[256:] {
		d, q, k, h, s := half(src), src[2:34], src[34:66], src[66:74], src[74:82]
		for j := range 32 {
			db := d * (0.5 + float32(s[j/4]>>(j/2%2*4)&15)) * 0.25
			c := int(q[j]) | int(h[j/4]>>(j%4*2)&3)<<8
			signed(dst[8*j:], grid[8*c:][:8], db, k[j])
		}
	}
}

func iq3_xxs(dst []float32, src []byte) {
	grid := gridsOf().iq3xxs
	for ; len(src) >= 98; src, dst = src[98:], dst[256:] {
		d, q := half(src), src[2:66]
		for g := range 8 {
			ks := u32(src[66+4*g:])
			db := d * (0.5 + float32(ks>>28)) * 0.5
			for j := range 8 {
				signed(dst[32*g+4*j:], grid[4*int(q[8*g+j]):][:4], db, even(ks>>(j/2*7))>>(j%2*4))
			}
		}
	}
}

func iq3_s(dst []float32, src []byte) {
	grid := gridsOf().iq3s
	for ; len(src) >= 110; src, dst = src[110:], dst[256:] {
		d, q, h, k, s := half(src), src[2:66], src[66:74], src[74:106], src[106:110]
		for j := range 64 {
			db := d * float32(1+2*(s[j/16]>>(j/8%2*4)&15))
			c := int(q[j]) | int(h[j/8]>>(j%8)&1)<<8
			signed(dst[4*j:], grid[4*c:][:4], db, k[j/2]>>(j%2*4))
		}
	}
}

// shifted writes d·(number + delta).
func shifted(out, numbers []float32, d, delta float32) {
	for i, v := range numbers {
		out[i] = d * (v + delta)
	}
}

func iq1_s(dst []float32, src []byte) {
	grid := gridsOf().iq1s
	for ; len(src) >= 50; src, dst = src[50:], dst[256:] {
		d := half(src)
		for g := range 8 {
			hs := u16(src[34+2*g:])
			dl, delta := d*float32(2*(hs>>12&7)+1), float32(0.125)
			if hs&0x8000 != 0 {
				delta = -delta
			}
			for j, q := range src[2+4*g : 6+4*g] {
				c := int(q) | int(hs>>(3*j)&7)<<8
				shifted(dst[32*g+8*j:], grid[8*c:][:8], dl, delta)
			}
		}
	}
}

func iq1_m(dst []float32, src []byte) {
	grid := gridsOf().iq1s
	for ; len(src) >= 56; src, dst = src[56:], dst[256:] {
		var s [4]uint16
		for i := range s {
			s[i] = u16(src[48+2*i:])
		}
		bits := s[0]>>12 | s[1]>>12<<4 | s[2]>>12<<8 | s[3]>>12<<12
		d := half([]byte{byte(bits), byte(bits >> 8)})
		for j := range 32 {
			h := src[32+j/2] >> (j % 2 * 4)
			dl, delta := d*float32(2*(s[j/8]>>(j/2%4*3)&7)+1), float32(0.125)
			if h&8 != 0 {
				delta = -delta
			}
			c := int(src[j]) | int(h&7)<<8
			shifted(dst[8*j:], grid[8*c:][:8], dl, delta)
		}
	}
}
