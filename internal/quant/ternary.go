package quant

// ggml's ternary blocks of 256 elements −d, 0 and d; d is a binary16 at the end.
//
//	tq1_0  q[48] h[4] d   five elements of a byte of q, four of h, in base 3: (q·3ⁿ mod 256)·3/256 − 1
//	tq2_0  q[64] d        q of 2 bits, less 1
var (
	TQ1_0 = &Block{"tq1_0", 256, 54, tq1_0, grid{0, 52, 0x00, 0xff, upTo(3), 1.1}}
	TQ2_0 = &Block{"tq2_0", 256, 66, tq2_0, grid{0, 64, 0x00, 0xaa, upTo(3), 1.1}}
)

func tq1_0(dst []float32, src []byte) {
	for ; len(src) >= 54; src, dst = src[54:], dst[256:] {
		d, out := half(src[52:]), dst
		for _, part := range []struct{ from, to, digits int }{{0, 32, 5}, {32, 48, 5}, {48, 52, 4}} {
			power := byte(1)
			for range part.digits {
				for i, b := range src[part.from:part.to] {
					out[i] = d * float32(int32(uint16(b*power)*3>>8)-1)
				}
				out = out[part.to-part.from:]
				power *= 3
			}
		}
	}
}

func tq2_0(dst []float32, src []byte) {
	for ; len(src) >= 66; src, dst = src[66:], dst[256:] {
		d := half(src[64:])
		for g := range 8 {
			q, out := src[g/4*32:], dst[32*g:32*g+32]
			for i := range out {
				out[i] = d * float32(int32(q[i]>>(g%4*2)&3)-1)
			}
		}
	}
}
