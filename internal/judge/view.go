package judge

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// sides are the two runs of a pair.
type sides struct {
	golden, actual *dump.Run
	match.Pair
}

// views applies the views of the pair.
func (s *sides) views() (golden, actual *tensor.Tensor, err error) {
	if golden, err = view(s.golden, s.Golden, s.GoldenView, s.RowMask); err == nil {
		actual, err = view(s.actual, s.Actual, s.ActualView, s.RowMask)
	}
	return golden, actual, err
}

func view(r *dump.Run, indices []int, v match.View, mask []bool) (*tensor.Tensor, error) {
	parts := make([]*tensor.Tensor, len(indices))
	for i, at := range indices {
		parts[i] = r.Entries[at].Tensor
	}
	t, err := v.Apply(parts...)
	if err != nil {
		return nil, err
	}
	return masked(t, mask)
}

func masked(t *tensor.Tensor, mask []bool) (*tensor.Tensor, error) {
	if mask == nil {
		return t, nil
	}
	return t.SelectRows(mask)
}

// frame is a pair in one shape, padding included: that of the golden's own tensor wherever the candidate has whole
// rows of it.
type frame struct {
	golden, actual *tensor.Tensor
	pad            []bool // rows that do not count; nil if all do
	has            bool   // the candidate has rows of padding, too
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
		f.pad, f.has = match.RowsLeftOut(s.RowMask, f.golden), true
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

// printed is a pair of which a log shows only some values, rounded to decimals. What it shows can
// tell that something is wrong, never that all is right.
type printed struct {
	known        []int // row-major element numbers that both sides show
	n            int   // of so many
	golden       tensor.DType
	actual       tensor.DType
	atol, digits float64 // what printing hides: absolute, and relative to the value
}

// printedOf returns nil where both sides were dumped.
func printedOf(k *Case, pair match.Pair) (p *printed) {
	for _, e := range []dump.Entry{k.Golden.Entries[pair.Golden[0]], k.Actual.Entries[pair.Actual[0]]} {
		if e.Printed == nil {
			continue
		}
		if p == nil {
			p = &printed{known: e.Printed.Known}
		}
		p.known = slices.DeleteFunc(slices.Clone(p.known), func(i int) bool {
			_, both := slices.BinarySearch(e.Printed.Known, i)
			return !both
		})
		if half := math.Pow(10, -float64(e.Printed.Decimals)) / 2; e.Printed.Decimals > 0 && e.Printed.Relative {
			p.digits += half
		} else if e.Printed.Decimals > 0 {
			p.atol += half
		}
	}
	return p
}

// gather replaces the tensors of a port by the values that are known on both sides.
func (p *printed) gather(port *Port, pair match.Pair) error {
	p.n, p.golden, p.actual = port.Golden.Len(), port.Golden.DType(), port.Actual.DType()
	for _, v := range []match.View{pair.GoldenView, pair.ActualView} {
		for _, op := range v {
			if op.Kind != match.Reshape && !p.whole() {
				port.Problem = fmt.Sprintf("a log shows %d of %d values, and cannot be viewed by %s: dump the tensor to a file", len(p.known), p.n, v)
				return nil
			}
		}
	}
	for _, t := range []**tensor.Tensor{&port.Golden, &port.Actual} {
		values := make([]float64, len(p.known))
		for i, at := range p.known {
			values[i] = (*t).At(at)
		}
		var err error
		if *t, err = tensor.Of(values, len(values)); err != nil {
			return err
		}
	}
	return nil
}

func (p *printed) whole() bool { return len(p.known) == p.n }

// criteria allows for the decimals that were not printed, besides what the types are allowed. Where
// a log has the digits of every value, they are judged together, as a tensor is: a value near zero
// is noise to the last digit.
func (p *printed) criteria(d tensor.DType) compare.Criteria {
	limit := compare.Floor(d).RowRelL2 + p.digits
	if p.atol == 0 && p.whole() {
		return compare.Criteria{compare.RelL2: limit}
	}
	return compare.Criteria{compare.Atol: p.atol, compare.Rtol: limit}
}

func (p *printed) text() string {
	return fmt.Sprintf("a log shows %d of %d values", len(p.known), p.n)
}
