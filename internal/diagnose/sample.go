package diagnose

import (
	"github.com/goparity/goparity/tensor"
)

// Late reports whether the time for diagnosis is over. A hypothesis with much to calculate asks now
// and then.
func (s *Scene) Late() bool { return s.ctx != nil && s.ctx.Err() != nil }

// Sample marks the rows of the target on which hypotheses that go row by row work: nil, which is
// all of them, for a target below 2^20 elements. Of a larger one rows spread evenly, the first and
// the last among them, without padding.
func (s *Scene) Sample() []bool {
	t := s.Target
	if s.sample != nil || t == nil || t.Golden.Len() < sampleFrom {
		return s.sample
	}
	rows := t.Rows()
	keep := max(sampleKeep/t.Width(), sampleLeast)
	if keep >= rows {
		return nil
	}
	s.sample = make([]bool, rows)
	for i := range keep {
		at := i * (rows - 1) / (keep - 1)
		s.sample[at] = !t.Pads(at)
	}
	return s.sample
}

// Rows lists the rows of the target that are predicted: those of Sample that are not padding. marks
// has true for each of them, as Prediction.Rows wants it; nil for all.
func (s *Scene) Rows() (rows []int, marks []bool) {
	t := s.Target
	marks = t.Kept(s.Sample())
	for i := range t.Rows() {
		if marks == nil || marks[i] {
			rows = append(rows, i)
		}
	}
	return rows, marks
}

// Part decodes a tensor: its rows in Sample if it has as many rows as the target, else all of it.
// No one writes to the result.
func (s *Scene) Part(t *tensor.Tensor) *Array {
	keep := s.Sample()
	if keep == nil || t.Len()/max(t.RowLen(), 1) != len(keep) {
		return s.Array(t)
	}
	s.init()
	return cached(s.parts, t, func(t *tensor.Tensor) *Array {
		if part := SelectRows(t, keep); part != nil {
			return ArrayOf(part)
		}
		return s.Array(t)
	})
}

// Kept marks those of the predicted rows that are not padding; nil is all, in and out.
func (p *Port) Kept(predicted []bool) []bool {
	if predicted == nil && p.PadRows == nil {
		return nil
	}
	rows := make([]bool, p.Rows())
	for i := range rows {
		rows[i] = (predicted == nil || i < len(predicted) && predicted[i]) && !p.Pads(i)
	}
	return rows
}

// SelectRows returns the marked rows of a tensor as one of two axes, the tensor itself for no
// marks; nil if there are none.
func SelectRows(t *tensor.Tensor, marks []bool) *tensor.Tensor {
	if marks == nil {
		return t
	}
	w := max(t.RowLen(), 1)
	flat, err := t.Reshape(t.Len()/w, w)
	if err != nil {
		return nil
	}
	if flat, err = flat.SelectRows(marks); err != nil || flat.Len() == 0 {
		return nil
	}
	return flat
}
