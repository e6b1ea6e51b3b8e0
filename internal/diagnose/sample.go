package diagnose

import (
	"slices"

	"github.com/goparity/goparity/tensor"
)

// The size from which a target is sampled, and how many elements are kept then, in whole rows: at least sampleLeast.
const (
	sampleFrom  = 1 << 20
	sampleKeep  = 1 << 19
	sampleLeast = 128
)

// Late reports whether the time for diagnosis is over. A hypothesis with much to calculate asks now and then.
func (s *Scene) Late() bool { return s.ctx != nil && s.ctx.Err() != nil }

// Sample marks the rows of the target on which hypotheses that go row by row work: nil, which is all of them, for a target below 2^20 elements.
// Of a larger one runs of rows spread evenly, the first and the last row among them, with no padding.
func (s *Scene) Sample() []bool {
	t := s.Target
	if s.sample != nil || t == nil || t.Golden.Len() < sampleFrom {
		return s.sample
	}
	w := max(t.Golden.RowLen(), 1)
	rows := t.Golden.Len() / w
	keep := max(sampleKeep/w, sampleLeast)
	if keep >= rows {
		return nil
	}
	s.sample = make([]bool, rows)
	for i := range keep {
		s.sample[i*(rows-1)/(keep-1)] = true
	}
	for i, pad := range t.PadRows {
		if pad && i < rows {
			s.sample[i] = false
		}
	}
	return s.sample
}

// Part decodes a tensor: its rows in Sample if it has as many rows as the target, else all of it. Nobody writes to the result.
func (s *Scene) Part(t *tensor.Tensor) *Array {
	keep := s.Sample()
	if keep == nil || t.Len()/max(t.RowLen(), 1) != len(keep) {
		return s.Array(t)
	}
	s.Find("", "")
	if a := s.parts[t]; a != nil {
		return a
	}
	part := selectRows(t, keep)
	if part == nil {
		return s.Array(t)
	}
	s.parts[t] = ArrayOf(part)
	return s.parts[t]
}

// actual is the tensor that the candidate had at a port: the golden where it recorded none, nil for the target.
func (s *Scene) actual(p *Port) *tensor.Tensor {
	switch {
	case p.Actual != nil && slices.Equal(p.Actual.Shape(), p.Golden.Shape()):
		return p.Actual
	case p == s.Target:
		return nil
	}
	return p.Golden
}

// inSample reports whether a port goes row by row with the target.
func (s *Scene) inSample(p *Port) bool {
	t := s.Target
	return p.Golden.Len()/max(p.Golden.RowLen(), 1) == t.Golden.Len()/max(t.Golden.RowLen(), 1)
}
