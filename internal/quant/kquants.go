package quant

// ggml's K-quants: blocks of 256 elements in groups of 16 or 32, whose scales s, and minima m, are
// whole numbers of 4, 6 or 8 bits times those of the block, d and e, as binary16.
//
//	q2_k  sm[16] q[64] d e      (d·s)·q − e·m   groups of 16, s and m of 4 bits
//	q3_k  h[32] q[64] s[12] d   (d·s)·q         groups of 16, s of 6 bits less 32, q less 4 where h is 0
//	q4_k  d e sm[12] q[128]     (d·s)·q − e·m   groups of 32, s and m of 6 bits
//	q5_k  d e sm[12] h[32] q[128]               the same, h is the fifth bit of q
//	q6_k  q[128] h[64] s[16] d  (d·s)·(q−32)    groups of 16, s of 8 bits, h has two bits of each q
var (
	Q2_K = &Block{"q2_k", 256, 84, q2_k, grid{16, 80, 0x00, 0xff, upTo(4), 3}}
	Q3_K = &Block{"q3_k", 256, 110, q3_k, grid{0, 96, 0x00, 0xff, upTo(8), 3}}
	Q4_K = &Block{"q4_k", 256, 144, q4_k, grid{16, 144, 0x00, 0xff, upTo(16), 3}}
	Q5_K = &Block{"q5_k", 256, 176, q5_k, grid{16, 176, 0x00, 0xff, upTo(32), 3}}
	Q6_K = &Block{"q6_k", 256, 210, q6_k, grid{0, 192, 0x00, 0xff, upTo(64), 3}}
)

func q2_k(dst []float32, src []byte) {
	for ; len(src) >= 84; src, dst = src[84:], dst[256:] {
		q, d, e := src[16:80], half(src[80:]), half(src[82:])
		for g := range 16 { // a group
			dl, ml := d*float32(src[g]&15), float32(e*float32(src[g]>>4))
			out, codes := dst[16*g:16*g+16], q[g/8*32+g%2*16:]
			shift := g / 2 % 4 * 2
			for i := range out {
				out[i] = float32(dl*float32(codes[i]>>shift&3)) - ml
			}
		}
	}
}

func q3_k(dst []float32, src []byte) {
	for ; len(src) >= 110; src, dst = src[110:], dst[256:] {
		high, q, s, d := src[:32], src[32:96], src[96:108], half(src[108:])
		for g := range 16 {
			low := s[g%8] >> (g / 8 * 4) & 15
			dl := d * float32(int32(low|s[8+g%4]>>(g/4*2)&3<<4)-32)
			out, codes, bits := dst[16*g:16*g+16], q[g/8*32+g%2*16:], high[g%2*16:]
			shift, bit := g/2%4*2, g/2
			for i := range out {
				out[i] = dl * float32(int32(codes[i]>>shift&3)-int32(^bits[i]>>bit&1<<2))
			}
		}
	}
}

// scaleMin returns scale and minimum of group g of q4_k and q5_k: 6 bits each, of groups 4 to 7 the
// upper two bits in the bytes of groups 0 to 3.
func scaleMin(sm []byte, g int) (s, m byte) {
	if g < 4 {
		return sm[g] & 63, sm[g+4] & 63
	}
	return sm[g+4]&15 | sm[g-4]>>6<<4, sm[g+4]>>4 | sm[g]>>6<<4
}

func q4_k(dst []float32, src []byte) {
	var scales [4]float32
	for ; len(src) >= 144; src, dst = src[144:], dst[256:] {
		d, e, sm := half(src), half(src[2:]), src[4:16]
		for g := 0; g < 8; g += 2 {
			s0, m0 := scaleMin(sm, g)
			s1, m1 := scaleMin(sm, g+1)
			q, out := (*[32]byte)(src[16+16*g:]), (*[64]float32)(dst[32*g:])
			scales = [4]float32{d * float32(s0), float32(e * float32(m0)), d * float32(s1), float32(e * float32(m1))}
			affine4(out, q, &scales)
		}
	}
}

// affine4 writes d·q − m: low nibbles with the first scale and minimum, high ones with the second.
func affine4(out *[64]float32, q *[32]byte, scales *[4]float32) {
	d0, m0, d1, m1 := scales[0], scales[1], scales[2], scales[3]
	for i, b := range q {
		out[i] = float32(d0*float32(b&15)) - m0
		out[i+32] = float32(d1*float32(b>>4)) - m1
	}
}

func q5_k(dst []float32, src []byte) {
	for ; len(src) >= 176; src, dst = src[176:], dst[256:] {
		d, e, sm, high := half(src), half(src[2:]), src[4:16], (*[32]byte)(src[16:])
		for g := range 8 {
			s, m := scaleMin(sm, g)
			dl, ml := d*float32(s), float32(e*float32(m))
			q, out, shift := (*[32]byte)(src[48+g/2*32:]), (*[32]float32)(dst[32*g:]), g%2*4
			for i, b := range q {
				out[i] = float32(dl*float32(b>>shift&15|high[i]>>g&1<<4)) - ml
			}
		}
	}
}

func q6_k(dst []float32, src []byte) {
	for ; len(src) >= 210; src, dst = src[210:], dst[256:] {
		low, high, s, d := src[:128], src[128:192], src[192:208], half(src[208:])
		for g := range 8 { // 32 elements with two scales
			q, bits, out := low[g/4*64+g%2*32:], high[g/4*32:], (*[32]float32)(dst[32*g:])
			shift, two := g/2%2*4, g%4*2
			for i := range out {
				dl := d * float32(int8(s[2*g+i/16]))
				out[i] = dl * float32(int32(q[i]>>shift&15|bits[i]>>two&3<<4)-32)
			}
		}
	}
}
