package quant

// ggml's blocks of 32 elements with a scale d, and of those ending in 1 a minimum m, as binary16.
// The low nibbles are the first 16 elements, the high ones the others. Where an element has a fifth
// bit, it is bit i of the 32 bits h.
//
//	q4_0  d q       d·(q−8)
//	q4_1  d m q     d·q + m
//	q5_0  d h q     d·(q−16)
//	q5_1  d m h q   d·q + m
//	q8_0  d q       d·q
var (
	Q4_0 = &Block{"q4_0", 32, 18, q4_0, grid{2, 18, 0x00, 0xff, upTo(16), 1.1}}
	Q4_1 = &Block{"q4_1", 32, 20, q4_1, grid{4, 20, 0x00, 0xff, upTo(16), 1.1}}
	Q5_0 = &Block{"q5_0", 32, 22, q5_0, grid{2, 22, 0x00, 0xff, upTo(32), 1.1}}
	Q5_1 = &Block{"q5_1", 32, 24, q5_1, grid{4, 24, 0x00, 0xff, upTo(32), 1.1}}
	Q8_0 = &Block{"q8_0", 32, 34, q8_0, grid{2, 34, 0x81, 0x7f, upTo(255), 1.1}}
)

func q4_0(dst []float32, src []byte) {
	for ; len(src) >= 18; src, dst = src[18:], dst[32:] {
		d, q, out := half(src), (*[16]byte)(src[2:]), (*[32]float32)(dst)
		for i, b := range q {
			out[i] = d * float32(int32(b&15)-8)
			out[i+16] = d * float32(int32(b>>4)-8)
		}
	}
}

func q4_1(dst []float32, src []byte) {
	for ; len(src) >= 20; src, dst = src[20:], dst[32:] {
		d, m, q, out := half(src), half(src[2:]), (*[16]byte)(src[4:]), (*[32]float32)(dst)
		for i, b := range q {
			out[i] = float32(d*float32(b&15)) + m
			out[i+16] = float32(d*float32(b>>4)) + m
		}
	}
}

func q5_0(dst []float32, src []byte) {
	for ; len(src) >= 22; src, dst = src[22:], dst[32:] {
		d, h, q, out := half(src), u32(src[2:]), (*[16]byte)(src[6:]), (*[32]float32)(dst)
		for i, b := range q {
			out[i] = d * float32(int32(uint32(b&15)|h>>i&1<<4)-16)
			out[i+16] = d * float32(int32(uint32(b>>4)|h>>(i+16)&1<<4)-16)
		}
	}
}

func q5_1(dst []float32, src []byte) {
	for ; len(src) >= 24; src, dst = src[24:], dst[32:] {
		d, m, h := half(src), half(src[2:]), u32(src[4:])
		q, out := (*[16]byte)(src[8:]), (*[32]float32)(dst)
		for i, b := range q {
			out[i] = float32(d*float32(uint32(b&15)|h>>i&1<<4)) + m
			out[i+16] = float32(d*float32(uint32(b>>4)|h>>(i+16)&1<<4)) + m
		}
	}
}

func q8_0(dst []float32, src []byte) {
	for ; len(src) >= 34; src, dst = src[34:], dst[32:] {
		d, q, out := half(src), (*[32]byte)(src[2:]), (*[32]float32)(dst)
		for i, b := range q {
			out[i] = d * float32(int8(b))
		}
	}
}
