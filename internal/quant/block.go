package quant

import (
	"encoding/binary"

	"github.com/goparity/goparity/internal/smallfloat"
)

// A Block is a format in which a fixed number of elements is stored together.
type Block struct {
	Name string
	Len  int // elements in a block
	Size int // bytes of a block

	// decode writes the elements of whole blocks.
	decode func(dst []float32, src []byte)
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
