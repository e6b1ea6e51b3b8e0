package judge

import (
	"encoding/binary"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// sides are the two runs of a pair.
type sides struct {
	golden, actual *dump.Run
	match.Pair
}

// frame is a pair in one shape, padding included: that of the golden's own tensor wherever the candidate has whole
// rows of it.
type frame struct {
	golden, actual *tensor.Tensor
	pad            []bool // rows that do not count; nil if all do
}

func (s *sides) own() *tensor.Tensor { return s.golden.Entries[s.Golden[0]].Tensor }

func (s *sides) frame() (f frame, err error) {
	if f.actual, err = view(s.actual, s.Actual, s.ActualView, nil); err != nil {
		return f, err
	}
	if !s.GoldenView.Reshapes() && s.RowMask == nil {
		if whole, ok := s.spread(f.actual); ok {
			return whole, nil
		}
	}
	if f.golden, err = view(s.golden, s.Golden, s.GoldenView, nil); err != nil {
		return f, err
	}
	if s.RowMask != nil {
		f.pad = layout.Left(s.RowMask, f.golden)
	}
	if own := s.own(); s.GoldenView.Reshapes() {
		f.golden = own
		if reshaped, err := f.actual.Reshape(own.Shape()...); err == nil {
			f.actual = reshaped
		}
		if f.pad != nil && len(f.pad) != own.Len()/max(own.RowLen(), 1) {
			f.pad = nil // ids: one row is a sequence
		}
	}
	return f, nil
}

// inOwnShape returns the frame of a port in the golden's own shape, whatever part of that the candidate
// has; the lines that it lacks are padding. It is false where that cannot be.
func (p *Port) inOwnShape() (frame, bool) {
	f, err := p.sides.frame()
	if err == nil && slices.Equal(f.actual.Shape(), p.entry.Shape()) {
		return f, true
	}
	actual, err := view(p.sides.actual, p.sides.Actual, p.sides.ActualView, p.sides.RowMask)
	if err != nil {
		return f, false
	}
	return p.sides.spread(actual)
}

// spread puts what the candidate has of a golden tensor, whatever view of that it is, into the golden's
// own shape. pad tells the lines along the last axis that it has not. ok is false where it has lines in
// part.
func (s *sides) spread(actual *tensor.Tensor) (f frame, ok bool) {
	own := s.own()
	index := make([]byte, 8*own.Len())
	for i := range own.Len() {
		binary.LittleEndian.PutUint64(index[8*i:], uint64(i))
	}
	at, err := tensor.New(tensor.I64, own.Shape(), index)
	if err == nil {
		at, err = s.GoldenView.Apply(at)
	}
	if err == nil {
		at, err = masked(at, s.RowMask)
	}
	if err != nil || at.Len() != actual.Len() || actual.Len() == 0 {
		return f, false
	}
	size := actual.DType().Size()
	from, _ := actual.Copy().Bytes()
	to, has := make([]byte, size*own.Len()), make([]bool, own.Len())
	for i, k := range vec.ReadAll(at) {
		k := int(k)
		copy(to[k*size:], from[i*size:(i+1)*size])
		has[k] = true
	}
	for line := range slices.Chunk(has, max(own.RowLen(), 1)) {
		if slices.Contains(line, true) && slices.Contains(line, false) {
			return f, false
		}
		f.pad = append(f.pad, !line[0])
	}
	f.golden = own
	f.actual, err = tensor.New(actual.DType(), own.Shape(), to)
	return f, err == nil
}
