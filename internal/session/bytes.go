package session

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// mark is what the bytes of a port tell.
type mark struct {
	same int    // ports of one number hold equal bytes in the golden; 0 for those that are alone, and for constant and tiny tensors
	twin string // another output with equal bytes in the candidate, though the golden has others there
}

// Tensors below this many elements are equal by chance. Token ids and positions are not, if they are not all the same.
const leastFloats = 16

// marks hashes the tensors of both sides that may be equal to another one.
func (c *Comparison) marks(ctx context.Context) (map[portKey]mark, error) {
	marks := map[portKey]mark{}
	type place struct{ step, label string }
	for _, k := range c.Cases {
		golden, err := equals(ctx, k.Golden)
		if err != nil {
			return nil, err
		}
		actual, err := equals(ctx, k.Actual)
		if err != nil {
			return nil, err
		}
		same := map[place]int{}
		for i, e := range k.Golden.Entries {
			same[place{e.Step, e.Label()}] = golden[i]
			marks[portKey{k.Name, e.Step, e.Layer, e.Port}] = mark{same: golden[i]}
		}
		copies := map[int][]*Port{} // by number of equal bytes in the candidate
		number := map[place]int{}
		for i, e := range k.Actual.Entries {
			number[place{e.Step, e.Label()}] = actual[i]
		}
		for _, p := range c.Ports {
			if p.Case != k.Name || !p.Joined() || label.IsInput(p.Port) {
				continue
			}
			if n := number[place{p.Step, p.ActualSide.Name}]; n > 0 {
				copies[n] = append(copies[n], p)
			}
		}
		for _, ports := range copies {
			for _, p := range ports {
				for _, o := range ports {
					m, other := marks[p.key()], marks[o.key()]
					if o.ActualSide.Name != p.ActualSide.Name && (m.same != other.same || m.same == 0) && !equalBytes(p.Golden, o.Golden) && m.twin == "" {
						m.twin = o.Layer
						marks[p.key()] = m
					}
				}
			}
		}
	}
	return marks, nil
}

// equals numbers the tensors of a run: two of one step have the same number above 0 if their bytes are equal. Only tensors of which
// there are several of a size are read.
func equals(ctx context.Context, r *dump.Run) ([]int, error) {
	type size struct {
		step  string
		dtype tensor.DType
		n     int
	}
	sizes := map[size]int{}
	of := func(e dump.Entry) size { return size{e.Step, e.Tensor.DType(), e.Tensor.Len()} }
	for _, e := range r.Entries {
		sizes[of(e)]++
	}
	seed := maphash.MakeSeed()
	hashes := make([]uint64, len(r.Entries))
	err := each(ctx, len(r.Entries), func(i int) error {
		e := r.Entries[i]
		if data, ok := e.Tensor.Bytes(); ok && sizes[of(e)] > 1 && telling(e.Tensor, data) {
			hashes[i] = maphash.Bytes(seed, data) | 1
		}
		return nil
	})
	type content struct {
		size
		hash uint64
	}
	numbers, out := map[content]int{}, make([]int, len(r.Entries))
	for i, e := range r.Entries {
		if hashes[i] == 0 {
			continue
		}
		key := content{of(e), hashes[i]}
		if numbers[key] == 0 {
			numbers[key] = len(numbers) + 1
		}
		out[i] = numbers[key]
	}
	return out, err
}

// telling reports whether a tensor with these bytes is equal to another one only if it is that one: it is neither constant nor tiny.
func telling(t *tensor.Tensor, data []byte) bool {
	if t.DType().IsFloat() && t.Len() < leastFloats || t.Len() < 2 {
		return false
	}
	s := t.DType().Size()
	return !bytes.Equal(data[s:], data[:len(data)-s])
}

func equalBytes(a, b *tensor.Tensor) bool {
	x, okX := a.Bytes()
	y, okY := b.Bytes()
	return okX && okY && bytes.Equal(x, y)
}

// copies says where the candidate's outputs are equal though the golden's are not. A skipped operation looks like that, and so does one
// file written for two layers.
func (c *Comparison) copies(v *localise.Verdict, marks map[portKey]mark) {
	n, first := 0, ""
	for _, p := range c.Ports {
		m := marks[p.key()]
		if p.Agrees || m.twin == "" || p.Case != v.Case || p.Step != v.Step || p.Layer == m.twin {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s and %s are equal in the candidate and not in the reference: an operation between them is skipped, or one was recorded for the other",
				p.Layer, m.twin)
		}
	}
	if n > 1 {
		first += fmt.Sprintf(" (and %d more such pairs)", n-1)
	}
	if n > 0 {
		v.Evidence = append(v.Evidence, first)
	}
}
