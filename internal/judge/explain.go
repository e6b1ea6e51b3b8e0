package judge

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

// Explain adds to the row of a failing pair where it differs, how much, and what would pass. It
// reads the tensors again, many times slower than the comparison.
func (j *Decision) Explain() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Row.Status != report.StatusFail || j.err != nil || j.Row.Detail != nil {
		return
	}
	err := mapfile.Guard(func() error {
		j.Row.Detail, j.outside = j.port.explain(j.crit, j.verdict, j.Row)
		return nil
	})
	if err != nil {
		j.Row.Detail = []string{err.Error()}
	}
}

func (p *Port) explain(c compare.Criteria, v compare.Verdict, row *report.Layer) (lines []string, outside int) {
	tol := v.Tolerance
	_, elementwise := c.Tolerance()
	if !elementwise {
		// Without an elementwise tolerance, outside is what the noise of the type cannot explain.
		tol.Rtol = compare.Floor(p.Golden.DType(), p.Actual.DType()).RowRelL2
		tol.Atol = tol.Rtol * v.Result.NormGolden / math.Sqrt(float64(max(v.Result.Finite, 1)))
	}
	d, err := compare.Explain(p.Golden, p.Actual, tol)
	if err != nil {
		return []string{err.Error()}, 0
	}
	r := v.Result
	row.Histogram = report.HistogramOf(d)
	row.Rows = report.RowsOf(d.Rows)
	m := r.MaxAbs
	integers := !p.Golden.DType().IsFloat() || !p.Actual.DType().IsFloat()
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if m.Index >= 0 {
		add("worst element %s: golden %.9g, actual %.9g, |a−g| %.4g", tensor.FormatShape(p.Golden.Index(m.Index)), m.Golden, m.Actual, m.Value)
	}
	if n, isMask := mask.Differ(p.Golden, p.Actual); isMask {
		add("masks: the golden holds %s, the candidate %s; %d of %d elements allow something else", mask.Constants(p.Golden),
			mask.Constants(p.Actual), n, r.N)
		return lines, n
	}
	if r.NormActual == 0 && r.NormGolden > 0 && r.Finite == r.N {
		add("it is all zero in the candidate: is a weight missing? MAX reads a missing one as zeros")
	}
	if integers {
		add("%s, %s", d.BadRows.Text("row"), d.BadColumns.Text("column"))
		return lines, d.Mismatches
	}
	add("outside %.3g + %.3g·|g|: %d of %d elements; %s, %s", tol.Atol, tol.Rtol, d.Mismatches, r.N, d.BadRows.Text("row"), d.BadColumns.Text("column"))
	if !math.IsInf(d.SmallestAtol, 0) {
		add("elementwise it would pass with atol %.4g at rtol %.3g", d.SmallestAtol, tol.Rtol)
	}
	if !math.IsInf(d.SmallestRtol, 0) {
		add("or with rtol %.4g at atol %.3g", d.SmallestRtol, tol.Atol)
	}
	if need, below := tol.BelowRounding(p.Actual.DType()); below && elementwise {
		add("the tolerance is below the rounding of %s itself: no rtol under %.3g can be kept", p.Actual.DType(), need)
	}
	if d.ULP.Max > 0 {
		add("largest distance %.4g ULP of %s", d.ULP.Max, p.Actual.DType())
	}
	for _, f := range structure.OfLines(p.Golden, p.Actual, d.Rows, d.Columns, p.Floor, 0) {
		add("%s", f.Text)
	}
	return lines, d.Mismatches
}
