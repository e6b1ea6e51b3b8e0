package gguf

import (
	_ "embed"
	"math/bits"
	"sync"

	"github.com/goparity/goparity/internal/smallfloat"
)

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
