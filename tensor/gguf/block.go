package gguf

import (
	"encoding/binary"
	"math"

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
