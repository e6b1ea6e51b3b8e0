package fault

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
)

// GroupSums is a product whose weights are not known, of which each output is off by a number times
// the sum of each group of inputs: that is what zero points do that are not those of the weight,
//
//	Σ s·(q − z′)·x = Σ s·(q − z)·x + Σ_groups s·(z − z′)·Σ x
//
// or each output is that of a neighbour, but for such sums and its scale: numbers that were unpacked
// in another order along the outputs. The numbers are fitted to every other row, so that rows that
// were not asked have to agree; they prove nothing where rows are few.
func GroupSums(o *rebuild.Given) (out List) {
	v := o.Out
	if o.In == nil || !o.In.IsFloat() || !v.IsTarget() || module.IsNorm(o.Layer) || o.In.Rows != v.Rows {
		return nil
	}
	rows := op.Spread(v.Rows, rebuild.SampleRows)
	var some []int
	for i := 0; i < len(rows); i += 2 {
		some = append(some, rows[i])
	}
	for _, size := range op.GroupSizes {
		n := o.In.Width / size
		if size < leastSumGroup || o.In.Width%size != 0 || len(some) < n+2 {
			continue
		}
		f := out.add(sums(o, some, size, nil), 1,
			"each output is off by a number times the sum of each group of %d inputs, as by other zero points", size)
		f.ID, f.Params = quantZero, n*v.Width
		for _, m := range nibbleOrders {
			if len(m) <= 8 && v.Width%len(m) == 0 && v.Width > len(m) {
				f := out.add(sums(o, some, size, m), 2,
					"each output is that of the place %v of its %d, but for a factor and a number times the sum of each group of %d inputs", m, len(m), size)
				f.ID, f.Params = quantOrder, (n+1)*v.Width
			}
		}
	}
	return out
}

// sums fits, for each output, a number for each group of inputs, and where m is not nil the factor of
// the output that m says in place of its own.
func sums(o *rebuild.Given, fitted []int, size int, m []int) rebuild.Eval {
	v := o.Out
	var fit [][]float64 // by output
	source := func(c int) int {
		if m == nil {
			return c
		}
		return c - c%len(m) + m[c%len(m)]
	}
	columns := func(x, y []float64, rows, c int) [][]float64 {
		groups := o.In.Width / size
		all := make([][]float64, groups, groups+1)
		for k := range all {
			all[k] = make([]float64, rows)
			for i := range rows {
				at := i*o.In.Width + k*size
				all[k][i] = floats.Sum(x[at : at+size])
			}
		}
		if m != nil {
			other := make([]float64, rows)
			for i := range rows {
				other[i] = y[i*v.Width+source(c)]
			}
			all = append(all, other)
		}
		return all
	}
	return func(e *rebuild.Evaluation, rows []int) []float64 {
		if fit == nil {
			clean := o.Graph().With(v, nil)
			x, y, wrong := clean.Get(o.In, fitted), o.Eval(clean, fitted), v.Wrong(fitted)
			if x == nil || y == nil || wrong == nil || !o.Graph().Spend(float64(len(fitted)*v.Width*o.In.Width/size)) {
				return nil
			}
			for c := range v.Width {
				target := make([]float64, len(fitted))
				for i := range target {
					if target[i] = wrong[i*v.Width+c]; m == nil {
						target[i] -= y[i*v.Width+c]
					}
				}
				f := op.LeastSquares(columns(x, y, len(fitted), c), target)
				if f == nil {
					return nil
				}
				fit = append(fit, f)
			}
		}
		x, y := e.Get(o.In, rows), o.Eval(e, rows)
		if x == nil || y == nil {
			return nil
		}
		out := make([]float64, len(rows)*v.Width)
		for c := range v.Width {
			all := columns(x, y, len(rows), c)
			for i := range rows {
				sum := 0.0
				if m == nil {
					sum = y[i*v.Width+c]
				}
				for k, f := range fit[c] {
					sum += f * all[k][i]
				}
				if math.IsNaN(sum) {
					return nil
				}
				out[i*v.Width+c] = sum
			}
		}
		return out
	}
}
