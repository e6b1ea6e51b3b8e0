package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

// Explain adds to the row of a pair that fails criteria where the two differ, how much, and what would pass. d
// is the type whose limits hold, floor the limit up to which the two agree. It returns how many elements
// are outside the elementwise tolerance or, without one, off by more than the noise of the type.
func (l *Layer) Explain(golden, actual *tensor.Tensor, c compare.Criteria, v compare.Verdict, d tensor.DType, floor compare.Limits) (outside int) {
	tol := v.Tolerance
	_, elementwise := c.Tolerance()
	if !elementwise {
		// Without an elementwise tolerance, outside is what the noise of the type cannot explain.
		tol.Rtol = compare.Floor(d).RowRelL2
		if cost := v.Result.Cost; cost != nil && cost.Row > 0 && !math.IsInf(cost.Row, 0) { // what the worst row may be off
			tol.Rtol = v.Result.WorstRow.RelL2 * c[compare.Cost] / cost.Row
		}
		tol.Atol = tol.Rtol * v.Result.NormGolden / math.Sqrt(float64(max(v.Result.Finite, 1)))
	}
	x, err := compare.Explain(golden, actual, tol)
	if err != nil {
		l.Detail = []string{err.Error()}
		return 0
	}
	r := v.Result
	l.Histogram = &Histogram{Equal: x.Equal, Exponent: x.Exponent, Counts: x.Decades}
	l.Rows = rowsOf(x.Rows)
	m := r.MaxAbs
	integers := !golden.DType().IsFloat() || !actual.DType().IsFloat()
	add := func(format string, args ...any) { l.Detail = append(l.Detail, fmt.Sprintf(format, args...)) }
	if m.Value > 0 { // of the finite ones
		add("worst element %s: golden %.9g, actual %.9g, |a−g| %.4g", tensor.FormatShape(golden.Index(m.Index)), m.Golden, m.Actual, m.Value)
	}
	if n, isMask := mask.Differ(golden, actual); isMask {
		add("masks: the golden holds %s, the candidate %s; %d of %d elements allow something else", mask.Constants(golden),
			mask.Constants(actual), n, r.N)
		return n
	}
	if r.NormActual == 0 && r.NormGolden > 0 && r.Finite == r.N {
		add("it is all zero in the candidate: is a weight missing? MAX reads a missing one as zeros")
	}
	if integers {
		add("%s, %s", x.BadRows.Text("row"), x.BadColumns.Text("column"))
		return x.Mismatches
	}
	add("outside %.3g + %.3g·|g|: %d of %d elements; %s, %s", tol.Atol, tol.Rtol, x.Mismatches, r.N, x.BadRows.Text("row"), x.BadColumns.Text("column"))
	if would := wouldPass(x, tol, actual.DType()); would != "" {
		add("%s", would)
	}
	if need, below := tol.BelowRounding(actual.DType()); below && elementwise {
		add("the tolerance is below the rounding of %s itself: no rtol under %.3g can be kept", actual.DType(), need)
	}
	for _, f := range structure.OfLines(golden, actual, x.Rows, x.Columns, floor, 0) {
		add("%s", f.Text)
	}
	return x.Mismatches
}

// wouldPass says which elementwise tolerance a failing pair keeps.
func wouldPass(d compare.Detail, tol compare.Tolerance, t tensor.DType) string {
	var parts []string
	if !math.IsInf(d.SmallestAtol, 0) {
		parts = append(parts, fmt.Sprintf("with atol %.4g at rtol %.3g", d.SmallestAtol, tol.Rtol))
	}
	if !math.IsInf(d.SmallestRtol, 0) {
		parts = append(parts, fmt.Sprintf("with rtol %.4g at atol %.3g", d.SmallestRtol, tol.Atol))
	}
	would, far := "", ""
	if len(parts) > 0 {
		would = "elementwise it would pass " + strings.Join(parts, ", or ")
	}
	if d.ULP.Max > 0 {
		far = fmt.Sprintf("largest distance %.4g ULP of %s", d.ULP.Max, t)
	}
	return joined("; ", would, far)
}
