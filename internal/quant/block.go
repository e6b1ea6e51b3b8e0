package quant

import (
	"bytes"
	"encoding/binary"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// A Block is a format in which a fixed number of elements is stored together.
type Block struct {
	Name string
	Len  int // elements in a block
	Size int // bytes of a block

	// decode writes the elements of whole blocks.
	decode func(dst []float32, src []byte)
	grid   grid
}

// grid is where a block has its codes, and what they stand for.
type grid struct {
	from, to  int  // bytes with codes
	low, high byte // all of them if the codes are the lowest and the highest
	values    []float32
	clip      float64 // see tensor.Grid
}

// upTo returns the whole numbers below n.
func upTo(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i)
	}
	return out
}

// Packing returns the block as the packing of a tensor.
func (b *Block) Packing() *tensor.Packing {
	p := &tensor.Packing{Name: b.Name, Unpack: b.Unpack}
	if g := b.grid; g.values != nil {
		p.Grid = &tensor.Grid{Values: g.values, Epsilon: 1.0 / (1 << 11), Clip: g.clip, Ends: b.ends}
	}
	return p
}

// ends unpacks blocks with the lowest and the highest codes.
func (b *Block) ends(low, high []float32, data []byte, from int) {
	first, end := from/b.Len, (from+len(low)+b.Len-1)/b.Len
	part := bytes.Clone(data[first*b.Size : end*b.Size])
	for _, side := range []struct {
		dst  []float32
		code byte
	}{{low, b.grid.low}, {high, b.grid.high}} {
		for at := 0; at < len(part); at += b.Size {
			for i := b.grid.from; i < b.grid.to; i++ {
				part[at+i] = side.code
			}
		}
		b.Unpack(side.dst, part, from-first*b.Len)
	}
}

// Unpack writes the elements from, from+1, … of the blocks in data to dst. It panics if data has
// fewer.
func (b *Block) Unpack(dst []float32, data []byte, from int) {
	at := from / b.Len
	if skip := from % b.Len; skip > 0 || len(dst) < b.Len {
		one := make([]float32, b.Len)
		for first := true; len(dst) > 0 && (first && skip > 0 || len(dst) < b.Len); first = false {
			b.decode(one, data[at*b.Size:(at+1)*b.Size])
			n := copy(dst, one[skip:])
			dst, skip = dst[n:], 0
			at++
		}
	}
	n := len(dst) / b.Len
	if n > 0 {
		b.decode(dst[:n*b.Len], data[at*b.Size:(at+n)*b.Size])
	}
	if rest := dst[n*b.Len:]; len(rest) > 0 {
		b.Unpack(rest, data, (at+n)*b.Len)
	}
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// half returns the value of a binary16.
func half(b []byte) float32 { return smallfloat.F16()[u16(b)] }
