package diagnose

import (
	"cmp"
	"math"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// judge measures a prediction. One that is not at least twice as near to the candidate as the
// golden is no cause.
func (s *Scene) judge(p Prediction) (Cause, bool) {
	c := Cause{ID: p.ID, Layer: cmp.Or(p.Layer, s.Layer), Text: p.Text, Fit: math.NaN(), FitGolden: math.NaN(),
		params: p.Params, rank: p.Rank}
	t := s.Target
	if t == nil || t.Actual == nil {
		return c, p.Value == nil
	}
	golden, actual := t.Golden, t.Actual
	rows := t.counting(p.Rows)
	if rows != nil {
		golden, actual = SelectRows(golden, rows), SelectRows(actual, rows)
	}
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
		return c, true
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
	c.Proven = enough(rows, s.Sample()) && proves(r, base, t.Floor) && r.N >= PerParam*p.Params
	c.close = c.Fit <= distance(base)/margin
	return c, c.Fit < distance(base)/loosely
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
	if err != nil || keep == nil {
		return value
	}
	return SelectRows(value, keep)
}

// enough reports whether at least half of the sampled rows are predicted, or half of all.
func enough(rows, sample []bool) bool {
	of := len(rows)
	if sample != nil && rows != nil {
		of = marked(sample)
	}
	return 2*marked(rows) >= of
}

func marked(rows []bool) (n int) {
	for _, r := range rows {
		if r {
			n++
		}
	}
	return n
}

// counting marks those of the predicted rows that are not padding; nil is all, in and out.
func (p *Port) counting(predicted []bool) []bool {
	if predicted == nil && p.PadRows == nil {
		return nil
	}
	rows := make([]bool, p.Rows())
	for i := range rows {
		rows[i] = (predicted == nil || i < len(predicted) && predicted[i]) &&
			(p.PadRows == nil || i < len(p.PadRows) && !p.PadRows[i])
	}
	return rows
}
