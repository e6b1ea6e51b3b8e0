package gguf

import (
	_ "embed"
	"encoding/binary"
	"math"
	"math/bits"
	"sync"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// block is a format in which a fixed number of elements is stored together, in groups of neighbours:
//
//	scale·values[code] + bias
type block struct {
	name  string
	len   int // elements in a block
	size  int // bytes of a block
	group int // elements that share scale and bias

	codes  func(dst, src []byte) // those of a block
	values []float32             // by code
	scales func(s *shares, src []byte)
	grid   grid
	// decode writes the elements of a block, where a code stands for several of them; else nil.
	decode func(dst []float32, src []byte)
}

// grid is what the codes of a block stand for.
type grid struct {
	values    []float32 // in order, stretched in any way
	low, high byte      // the first and the last code
	clip      float64   // see tensor.Grid
}

// shares are scales and biases by group.
type shares struct{ scale, bias [16]float32 }

// plane is where some bits of each code lie: of run neighbours in as many bytes, and of the next ones in the next
// bits of these. The lowest bits come first.
type plane struct{ at, bits, run int }

// codesIn returns what reads codes from planes, the first of which has their lowest bits.
func codesIn(planes ...plane) func(dst, src []byte) {
	return func(dst, src []byte) {
		clear(dst)
		low := 0
		for _, p := range planes {
			mask, part, out := byte(1<<p.bits-1), src[p.at:], dst
			for ; len(out) > 0; part = part[p.run:] {
				for shift := 0; shift < 8; shift += p.bits {
					for i, b := range part[:p.run] {
						out[i] |= b >> shift & mask << low
					}
					out = out[p.run:]
				}
			}
			low += p.bits
		}
	}
}

// less returns n whole numbers from −by on.
func less(n, by int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i - by)
	}
	return out
}

// packing returns the block as the packing of a tensor.
func (b *block) packing() *tensor.Packing {
	p := &tensor.Packing{Name: b.name, Unpack: b.elements}
	if g := b.grid; g.values != nil {
		fill := func(code byte) func(dst, _ []byte) {
			return func(dst, _ []byte) {
				for i := range dst {
					dst[i] = code
				}
			}
		}
		p.Grid = &tensor.Grid{Values: g.values, Epsilon: 1.0 / (1 << 11), Clip: g.clip, Ends: func(low, high []float32, data []byte, from int) {
			b.unpack(low, data, from, fill(g.low))
			b.unpack(high, data, from, fill(g.high))
		}}
	}
	return p
}

// elements writes those of the blocks in data from one on to dst. It panics if data has fewer.
func (b *block) elements(dst []float32, data []byte, from int) { b.unpack(dst, data, from, b.codes) }

// unpack writes the elements that codes reads.
func (b *block) unpack(dst []float32, data []byte, from int, codes func(dst, src []byte)) {
	var s shares
	for i := range s.bias {
		s.bias[i] = float32(math.Copysign(0, -1)) // added to any number it leaves that
	}
	one, q := make([]float32, b.len), make([]byte, b.len)
	for len(dst) > 0 {
		at := from / b.len * b.size
		src, out := data[at:at+b.size], one
		if from%b.len == 0 && len(dst) >= b.len {
			out = dst[:b.len]
		}
		if b.decode != nil {
			b.decode(out, src)
		} else {
			codes(q, src)
			b.scales(&s, src)
			for at := 0; at < b.len; at += b.group {
				scale, bias, part := s.scale[at/b.group], s.bias[at/b.group], out[at:at+b.group]
				for i, code := range q[at : at+b.group] {
					part[i] = float32(scale*b.values[code]) + bias
				}
			}
		}
		n := min(len(dst), b.len-from%b.len)
		copy(dst, out[from%b.len:])
		dst, from = dst[n:], from+n
	}
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// half returns the value of a binary16.
func half(b []byte) float32 { return smallfloat.F16()[u16(b)] }

// blocks are ggml's types whose elements are stored in blocks. The results are those of gguf-py, bit for bit.
//
// Blocks of 32 elements have a scale d, and those ending in 1 a minimum m, as binary16.
//
//	q4_0  d q       d·(q−8)
//	q4_1  d m q     d·q + m
//	q5_0  d h q     d·(q−16), h are the highest bits of q
//	q5_1  d m h q   d·q + m
//	q8_0  d q       d·q
//
// K-quants are blocks of 256 elements in groups of 16 or 32, whose scales s, and minima m, are
// whole numbers of 4, 6 or 8 bits times those of the block, d and e, as binary16.
//
//	q2_k  sm[16] q[64] d e      (d·s)·q − e·m   groups of 16, s and m of 4 bits
//	q3_k  h[32] q[64] s[12] d   (d·s)·(q−4)     groups of 16, s of 6 bits less 32, h is the highest bit of q
//	q4_k  d e sm[12] q[128]     (d·s)·q − e·m   groups of 32, s and m of 6 bits
//	q5_k  d e sm[12] h[32] q[128]               the same, h is the fifth bit of q
//	q6_k  q[128] h[64] s[16] d  (d·s)·(q−32)    groups of 16, s of 8 bits, h has two bits of each q
//
// Ternary blocks have 256 elements −d, 0 and d; d is a binary16 at the end.
//
//	tq1_0  q[48] h[4] d   five elements of a byte of q, four of h, in base 3
//	tq2_0  q[64] d        q of 2 bits, less 1
//
// Of other blocks 4 bits stand for 16 numbers v.
//
//	iq4_nl  d q[16]             32 elements, d·v, d a binary16, v of nonlinear
//	iq4_xs  d h s[4] q[128]     256 elements in groups of 32, (d·(s−32))·v, s of 6 bits, h the upper two
//	mxfp4   e q[16]             32 elements, 2^(e−127)·v, v an E2M1
//	nvfp4   s[4] q[32]          64 elements in groups of 16, s·v, s an E4M3 of which 0x7f is 0
var blocks = map[uint32]*block{
	2: {"q4_0", 32, 18, 32, codesIn(plane{2, 4, 16}), less(16, 8), scaleAt(0), grid{less(16, 0), 0, 15, 1.1}, nil},
	3: {"q4_1", 32, 20, 32, codesIn(plane{4, 4, 16}), less(16, 0), scaleAndMin, grid{less(16, 0), 0, 15, 1.1}, nil},
	6: {"q5_0", 32, 22, 32, codesIn(plane{6, 4, 16}, plane{2, 1, 1}), less(32, 16), scaleAt(0), grid{less(32, 0), 0, 31, 1.1}, nil},
	7: {"q5_1", 32, 24, 32, codesIn(plane{8, 4, 16}, plane{4, 1, 1}), less(32, 0), scaleAndMin, grid{less(32, 0), 0, 31, 1.1}, nil},
	8: {"q8_0", 32, 34, 32, codesIn(plane{2, 8, 32}), append(less(128, 0), less(128, 128)...), scaleAt(0),
		grid{less(255, 0), 0x81, 0x7f, 1.1}, nil},

	10: {"q2_k", 256, 84, 16, codesIn(plane{16, 2, 32}), less(4, 0), q2_k, grid{less(4, 0), 0, 3, 3}, nil},
	11: {"q3_k", 256, 110, 16, codesIn(plane{32, 2, 32}, plane{0, 1, 32}), less(8, 4), q3_k, grid{less(8, 0), 0, 7, 3}, nil},
	12: {"q4_k", 256, 144, 32, codesIn(plane{16, 4, 32}), less(16, 0), q45_k, grid{less(16, 0), 0, 15, 3}, nil},
	13: {"q5_k", 256, 176, 32, codesIn(plane{48, 4, 32}, plane{16, 1, 32}), less(32, 0), q45_k, grid{less(32, 0), 0, 31, 3}, nil},
	14: {"q6_k", 256, 210, 16, codesIn(plane{0, 4, 64}, plane{128, 2, 32}), less(64, 32), q6_k, grid{less(64, 0), 0, 63, 3}, nil},

	34: {"tq1_0", 256, 54, 256, inBase3, less(3, 1), scaleAt(52), grid{less(3, 0), 0, 2, 1.1}, nil},
	35: {"tq2_0", 256, 66, 256, codesIn(plane{0, 2, 32}), less(4, 1), scaleAt(64), grid{less(3, 0), 0, 2, 1.1}, nil},

	20: {"iq4_nl", 32, 18, 32, codesIn(plane{2, 4, 16}), nonlinear, scaleAt(0), grid{nonlinear, 0, 15, 1.1}, nil},
	23: {"iq4_xs", 256, 136, 32, codesIn(plane{8, 4, 16}), nonlinear, iq4_xs, grid{nonlinear, 0, 15, 3}, nil},
	39: {"mxfp4", 32, 17, 32, codesIn(plane{1, 4, 16}), doubled, mxfp4, grid{e2m1, 15, 7, 1.1}, nil},
	40: {"nvfp4", 64, 36, 16, codesIn(plane{4, 4, 8}), doubled, nvfp4, grid{e2m1, 15, 7, 1.1}, nil},

	16: lattice("iq2_xxs", 66, 0, 8, iq2_xxs),
	17: lattice("iq2_xs", 74, 1, 8, iq2_xs),
	22: lattice("iq2_s", 82, 2, 8, iq2_s),
	18: lattice("iq3_xxs", 98, 3, 4, iq3_xxs),
	21: lattice("iq3_s", 110, 4, 4, iq3_s),
	19: lattice("iq1_s", 50, 5, 8, iq1_s),
	29: lattice("iq1_m", 56, 5, 8, iq1_m),
}

// scaleAt reads the only scale of a block.
func scaleAt(at int) func(s *shares, src []byte) {
	return func(s *shares, src []byte) { s.scale[0] = half(src[at:]) }
}

func scaleAndMin(s *shares, src []byte) { s.scale[0], s.bias[0] = half(src), half(src[2:]) }

func q2_k(s *shares, src []byte) {
	d, e := half(src[80:]), half(src[82:])
	for g, sm := range src[:16] {
		s.scale[g], s.bias[g] = d*float32(sm&15), -float32(e*float32(sm>>4))
	}
}

func q3_k(s *shares, src []byte) {
	own, d := src[96:108], half(src[108:])
	for g := range 16 {
		low := own[g%8] >> (g / 8 * 4) & 15
		s.scale[g] = d * float32(int32(low|own[8+g%4]>>(g/4*2)&3<<4)-32)
	}
}

// q45_k reads scales and minima of 6 bits each, of groups 4 to 7 the upper two bits in the bytes of groups 0 to 3.
func q45_k(s *shares, src []byte) {
	d, e, sm := half(src), half(src[2:]), src[4:16]
	for g := range 8 {
		scale, least := sm[g%4]&63, sm[g%4+4]&63
		if g >= 4 {
			scale, least = sm[g+4]&15|sm[g-4]>>6<<4, sm[g+4]>>4|sm[g]>>6<<4
		}
		s.scale[g], s.bias[g] = d*float32(scale), -float32(e*float32(least))
	}
}

func q6_k(s *shares, src []byte) {
	d := half(src[208:])
	for g, own := range src[192:208] {
		s.scale[g] = d * float32(int8(own))
	}
}

// inBase3 reads the codes of tq1_0: digit n of a byte q is (q·3ⁿ mod 256)·3/256.
func inBase3(dst, src []byte) {
	for _, part := range []struct{ from, to, digits int }{{0, 32, 5}, {32, 48, 5}, {48, 52, 4}} {
		power := byte(1)
		for range part.digits {
			for i, b := range src[part.from:part.to] {
				dst[i] = byte(uint16(b*power) * 3 >> 8)
			}
			dst = dst[part.to-part.from:]
			power *= 3
		}
	}
}

var nonlinear = []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func iq4_xs(s *shares, src []byte) {
	d, high, low := half(src), u16(src[2:]), src[4:8]
	for g := range 8 {
		own := int32(low[g/2]>>(g%2*4)&15) | int32(high>>(2*g)&3<<4)
		s.scale[g] = d * float32(own-32)
	}
}

// e2m1 are the values of E2M1 in order.
var e2m1 = []float32{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}

// doubled are the values of E2M1 without −0, which ggml has not, times 2: its scales are halved.
var doubled = func() []float32 {
	out := make([]float32, 16)
	for i, v := range smallfloat.E2M1 {
		out[i] = 2*v + 0
	}
	return out
}()

func mxfp4(s *shares, src []byte) {
	s.scale[0] = smallfloat.F8().E8M0FNU[src[0]] / 2
	if src[0] == 255 {
		s.scale[0] = 1 << 127 // ggml's scale has no NaN
	}
}

// nvfp4 reads scales whose sign bit is not looked at; 0xff is a number.
func nvfp4(s *shares, src []byte) {
	for g, own := range src[:4] {
		switch own {
		case 0x7f:
			s.scale[g] = 0
		case 0xff:
			s.scale[g] = 240
		default:
			s.scale[g] = smallfloat.F8().E4M3FN[own&0x7f] / 2
		}
	}
}

// point is what a code stands for: d·(number + delta) of each number of a grid, negative where a bit of signs is set.
type point struct {
	code     int
	d, delta float32
	signs    byte
}

// lattice makes a block of 256 elements, whose codes choose each 4 or 8 numbers at once from a grid; at reads
// the j-th. d is a binary16, s are scales of groups, k are signs: one bit an element, or 7 bits for 8 elements, of
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
func lattice(name string, size, grid, each int, at func(src []byte, j int) point) *block {
	return &block{name: name, len: 256, size: size, decode: func(dst []float32, src []byte) {
		numbers := gridsOf()[grid]
		for j := range 256 / each {
			p := at(src, j)
			for i, v := range numbers[each*p.code:][:each] {
				if v = p.d * (v + p.delta); p.signs>>i&1 != 0 {
					v = -v
				}
				dst[each*j+i] = v
			}
		}
	}}
}

// gridData are the grids of ggml (MIT licence), as testdata/grids.py writes them: each number as
// the index of its value, 2 or 4 bits each, the first number lowest.
//
//go:embed grids.bin
var gridData []byte

// gridsOf returns the numbers of the grids: of iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s and iq1.
var gridsOf = sync.OnceValue(func() [6][]float32 {
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
	return [6][]float32{
		read(256, 8, 2, two...),
		read(512, 8, 2, two...),
		read(1024, 8, 2, two...),
		read(256, 4, 4, 4, 12, 20, 28, 36, 44, 52, 62),
		read(512, 4, 4, 1, 3, 5, 7, 9, 11, 13, 15),
		read(2048, 8, 2, -1, 0, 1, 0),
	}
})

// even returns 8 signs of 7 bits: the number of negative ones is even.
func even(k uint32) byte {
	s := byte(k & 127)
	return s | byte(bits.OnesCount8(s)&1)<<7
}

// eighth is ±1/8.
func eighth(negative bool) float32 {
	if negative {
		return -0.125
	}
	return 0.125
}

func iq2_xxs(src []byte, j int) point {
	q, ks := src[2+j/4*8:], u32(src[6+j/4*8:])
	return point{code: int(q[j%4]), d: half(src) * (0.5 + float32(ks>>28)) * 0.25, signs: even(ks >> (7 * (j % 4)))}
}

func iq2_xs(src []byte, j int) point {
	qk, s := u16(src[2+2*j:]), src[66:74]
	return point{code: int(qk & 511), d: half(src) * (0.5 + float32(s[j/4]>>(j/2%2*4)&15)) * 0.25, signs: even(uint32(qk >> 9))}
}

func iq2_s(src []byte, j int) point {
	q, k, h, s := src[2:34], src[34:66], src[66:74], src[74:82]
	return point{code: int(q[j]) | int(h[j/4]>>(j%4*2)&3)<<8, d: half(src) * (0.5 + float32(s[j/4]>>(j/2%2*4)&15)) * 0.25, signs: k[j]}
}

func iq3_xxs(src []byte, j int) point {
	ks := u32(src[66+j/8*4:])
	return point{code: int(src[2+j]), d: half(src) * (0.5 + float32(ks>>28)) * 0.5, signs: even(ks>>(j%8/2*7)) >> (j % 2 * 4)}
}

func iq3_s(src []byte, j int) point {
	q, h, k, s := src[2:66], src[66:74], src[74:106], src[106:110]
	return point{code: int(q[j]) | int(h[j/8]>>(j%8)&1)<<8, d: half(src) * float32(1+2*(s[j/16]>>(j/8%2*4)&15)), signs: k[j/2] >> (j % 2 * 4)}
}

func iq1_s(src []byte, j int) point {
	hs := u16(src[34+j/4*2:])
	return point{code: int(src[2+j]) | int(hs>>(j%4*3)&7)<<8, d: half(src) * float32(2*(hs>>12&7)+1), delta: eighth(hs&0x8000 != 0)}
}

func iq1_m(src []byte, j int) point {
	s := func(i int) uint16 { return u16(src[48+2*i:]) }
	d := smallfloat.F16()[s(0)>>12|s(1)>>12<<4|s(2)>>12<<8|s(3)>>12<<12]
	h := src[32+j/2] >> (j % 2 * 4)
	return point{code: int(src[j]) | int(h&7)<<8, d: d * float32(2*(s(j/8)>>(j/2%4*3)&7)+1), delta: eighth(h&8 != 0)}
}
