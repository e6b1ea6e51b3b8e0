package localise

import (
	"bytes"
	"context"
	"hash/maphash"

	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// LeastFloats is how many elements a floating-point tensor has at least to tell something by its
// bytes. It is a matter of chance, not measured. Token ids and positions tell something if they are
// two and not all the same.
const LeastFloats = 16

// Identify numbers tensors by their bytes: those of one dtype with equal bytes have one number. It is 0
// for what is constant or tiny, which is equal by chance. It reads them on all cores; the error is for a
// context that ended, or a file that could not be read any more.
func Identify(ctx context.Context, tensors []*tensor.Tensor) (numbers []int, err error) {
	type content struct { // up to a collision of 64-bit hashes
		dtype tensor.DType
		n     int
		hash  uint64
	}
	seed, contents := maphash.MakeSeed(), make([]content, len(tensors))
	err = vec.Each(ctx, len(tensors), func(i int) error {
		t := tensors[i]
		data, ok := t.Bytes()
		if !ok { // a view
			data, _ = t.Copy().Bytes()
		}
		if telling(t, data) {
			contents[i] = content{t.DType(), t.Len(), maphash.Bytes(seed, data)}
		}
		return nil
	})
	known := map[content]int{{}: 0}
	for _, c := range contents {
		if _, ok := known[c]; !ok {
			known[c] = len(known)
		}
		numbers = append(numbers, known[c])
	}
	return numbers, err
}

// telling reports whether a tensor with equal bytes has to be this one.
func telling(t *tensor.Tensor, data []byte) bool {
	if t.DType().IsFloat() && t.Len() < LeastFloats || t.Len() < 2 {
		return false
	}
	size := t.DType().Size()
	return !bytes.Equal(data[size:], data[:len(data)-size])
}
