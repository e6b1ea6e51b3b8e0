package trace

import (
	"bytes"
	"context"
	"hash/maphash"

	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/tensor"
)

// Identity tells which tensors of a run are one: those of one dtype with equal bytes. Constant and
// tiny tensors tell nothing, they are equal by chance.
type Identity struct {
	seed    maphash.Seed
	numbers map[content]int
	known   map[*tensor.Tensor]int
}

// content is what the bytes of a tensor are, up to a collision of 64-bit hashes.
type content struct {
	dtype tensor.DType
	n     int
	hash  uint64
}

// Identify reads tensors, on all cores. Those that are no contiguous bytes get no number. The error
// is for a context that ended, or a file that could not be read any more.
func Identify(ctx context.Context, tensors []*tensor.Tensor) (*Identity, error) {
	d := &Identity{seed: maphash.MakeSeed(), numbers: map[content]int{}, known: map[*tensor.Tensor]int{}}
	contents := make([]content, len(tensors))
	err := each.Do(ctx, len(tensors), func(i int) error {
		contents[i] = d.content(tensors[i])
		return nil
	})
	for i, c := range contents {
		if c.hash == 0 {
			continue
		}
		if d.numbers[c] == 0 {
			d.numbers[c] = len(d.numbers) + 1
		}
		d.known[tensors[i]] = d.numbers[c]
	}
	return d, err
}

// Of returns the number of a tensor, which all tensors with equal bytes share; 0 if its bytes tell
// nothing, or no tensor of the run has them.
func (d *Identity) Of(t *tensor.Tensor) int {
	if n, ok := d.known[t]; ok {
		return n
	}
	if _, ok := t.Bytes(); !ok {
		t = t.Copy() // a view
	}
	return d.numbers[d.content(t)]
}

func (d *Identity) content(t *tensor.Tensor) content {
	if !Telling(t) {
		return content{}
	}
	data, _ := t.Bytes()
	return content{t.DType(), t.Len(), maphash.Bytes(d.seed, data) | 1}
}

// Telling reports whether a tensor with equal bytes has to be this one: it is contiguous, neither
// constant nor tiny.
func Telling(t *tensor.Tensor) bool {
	data, ok := t.Bytes()
	if !ok || t.DType().IsFloat() && t.Len() < LeastFloats || t.Len() < 2 {
		return false
	}
	size := t.DType().Size()
	return !bytes.Equal(data[size:], data[:len(data)-size])
}
