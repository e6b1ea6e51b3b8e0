package diagnose

import (
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// judge measures a prediction. One that is not at least twice as near to the candidate as the
// golden is no cause.
func (s *Scene) judge(p Prediction) (Cause, bool) {
	c := Cause{ID: p.ID, Layer: s.Layer, Text: p.Text, Fit: math.NaN(), FitGolden: math.NaN(),
		params: p.Params, rank: p.Rank}
	t := s.Target
	if t == nil || t.Actual == nil {
		return c, p.Value == nil && !s.Open
	}
	rows := t.Kept(p.Rows)
	golden, actual := SelectRows(t.Golden, rows), SelectRows(t.Actual, rows)
	if golden == nil || actual == nil {
		return c, false
	}
	// A NaN on both sides is no error of the candidate's.
	base, err := compare.Tensors(golden, actual, compare.Tolerance{EqualNaN: true})
	if err != nil {
		return c, false
	}
	c.FitGolden = base.RelL2
	if p.Value == nil {
		return c, !s.Open
	}
	value := p.tensor(t, rows)
	if value == nil {
		return c, false
	}
	r, err := compare.Tensors(value, actual, compare.Tolerance{EqualNaN: true})
	if err != nil || r.BadNonFinite > 0 {
		return c, false
	}
	c.Fit = r.RelL2
	of := len(rows) // at least half of the sampled rows must be predicted, or half of all but padding
	if kept := t.Kept(nil); kept != nil {
		of = marked(kept)
	}
	if sample := s.Sample(); sample != nil && rows != nil {
		of = marked(sample)
	}
	c.Proven = 2*marked(rows) >= of && proves(r, base, t.Floor) && r.N >= PerParam*p.Params
	c.close = c.Fit <= distance(base)/margin
	shown := c.Fit < distance(base)/loosely
	switch {
	case s.Open:
		shown = c.Proven
	case shown && !c.Proven && !c.close && p.Params > 0:
		shown = !refuted(golden, actual, value, t.Floor)
	}
	c.Proven = c.Proven && !s.Open
	return c, shown
}

// refuted reports whether a prediction with fitted numbers makes a row or a column wrong that the
// candidate has right: numbers that are fitted to the others come nearer to any error. Without such
// numbers it may be the right mistake, less its edges.
func refuted(golden, actual, value *tensor.Tensor, floor compare.Limits) bool {
	was, err := compare.Explain(golden, actual, compare.Tolerance{})
	if err != nil {
		return false
	}
	is, err := compare.Explain(value, actual, compare.Tolerance{})
	if err != nil {
		return false
	}
	worse := func(was, is []compare.Line) bool {
		for i, l := range was {
			if i < len(is) && l.RelL2 <= floor.RowRelL2 && l.BadNonFinite == 0 && is[i].RelL2 > margin*floor.RowRelL2 {
				return true
			}
		}
		return false
	}
	return worse(was.Rows, is.Rows) || worse(was.Columns, is.Columns)
}

// proves is the rule: made is the candidate against a prediction, base against the golden, from
// which it must differ.
func proves(made, base compare.Result, floor compare.Limits) bool {
	return made.Agrees(floor) && !base.Agrees(floor) && made.RelL2 <= distance(base)/margin
}

// distance is how far the golden is from the candidate: infinitely if one of them has numbers that
// are not finite.
func distance(base compare.Result) float64 {
	if base.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return base.RelL2
}

// tensor is the predicted value at the rows that count; nil if the hypothesis made something of
// another size.
func (p Prediction) tensor(t *Port, rows []bool) *tensor.Tensor {
	w := t.Width()
	shape, keep := t.Golden.Shape(), rows
	if n := marked(p.Rows); p.Rows != nil && len(p.Value.Data) == n*w && n < t.Rows() {
		shape, keep = []int{n, w}, make([]bool, 0, n)
		for i, is := range p.Rows { // of the predicted rows those that are not padding
			if is {
				keep = append(keep, rows[i])
			}
		}
	}
	value, err := tensor.Of(p.Value.Data, shape...)
	if err != nil {
		return nil
	}
	return SelectRows(value, keep)
}

func marked(rows []bool) (n int) {
	for _, r := range rows {
		if r {
			n++
		}
	}
	return n
}
