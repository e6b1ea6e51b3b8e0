package compare

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/tensor"
)

// Tolerance says how large |a − g| may be: Atol + Rtol·|g|. Its zero value requires equal elements.
type Tolerance struct {
	Atol, Rtol float64
	EqualNaN   bool // NaN matches NaN
}

// Validate returns a [*MisuseError] for a tolerance that is negative, NaN or infinite.
func (t Tolerance) Validate() error {
	for _, v := range []struct {
		name  string
		value float64
	}{{"atol", t.Atol}, {"rtol", t.Rtol}} {
		if !(v.value >= 0) || math.IsInf(v.value, 0) {
			return misuse("%s = %v: want a number ≥ 0", v.name, v.value)
		}
	}
	return nil
}

// BelowRounding reports whether the tolerance is below the rounding error of type d: a correct
// value of magnitude 1, rounded to d, can have an error of needRtol = 2^−p (p significant bits),
// and that is more than Atol + Rtol. With an Rtol of needRtol, every correctly rounded value passes
// that is not subnormal. Integers and bools are not rounded.
func (t Tolerance) BelowRounding(d tensor.DType) (needRtol float64, below bool) {
	needRtol = d.Epsilon()
	return needRtol, t.Atol+t.Rtol < needRtol
}

// withAtol returns no metrics for [Rtol], because [Atol] judges the elements with both.
func withAtol(Pair, float64) ([]Metric, error) { return nil, nil }

// within counts the elements outside the tolerance.
func within(p Pair, _ float64) ([]Metric, error) {
	r, tol := p.Result, p.Asked
	f := Metric{Key: "within", Value: float64(r.Mismatches)}
	switch share := 100 * float64(r.Mismatches) / float64(r.N); {
	case p.Exact:
		f.Text = fmt.Sprintf("%d of %d elements (%.3g %%) differ, and integers are compared exactly; "+
			"the first is element %d",
			r.Mismatches, r.N, share, r.FirstMismatch)
	case p.Golden == nil:
		return recalled(p)
	default:
		f.Text = fmt.Sprintf("%d of %d elements (%.3g %%) are not within atol %g + rtol %g·|golden|, "+
			"the first is element %d",
			r.Mismatches, r.N, share, tol.Atol, tol.Rtol, r.FirstMismatch)
	}
	return []Metric{f}, nil
}

// nearest32 is how much larger than an [Extreme] the largest value may be.
const nearest32 = 0x1p-20

// recalled decides |a−g| ≤ atol + rtol·|g| if the metrics of a report are enough: its mismatches
// were counted with another tolerance, and only two extreme elements are known.
func recalled(p Pair) ([]Metric, error) {
	r, tol := p.Result, p.Asked
	outside := func(x Extreme) bool {
		return x.Index >= 0 && math.Abs(x.Actual-x.Golden) > tol.Atol+float64(tol.Rtol*math.Abs(x.Golden))
	}
	say := func(what string) string {
		return fmt.Sprintf("max |a−g| is %.3g: %s within atol %g + rtol %g·|golden|",
			r.MaxAbs.Value, what, tol.Atol, tol.Rtol)
	}
	f := Metric{Key: "within", Value: 1, Text: say("not")}
	switch {
	case r.Mismatches > 0 && tol.Atol <= p.Counted.Atol && tol.Rtol <= p.Counted.Rtol, outside(r.MaxAbs),
		outside(r.MaxRel):
		return []Metric{f}, nil
	case r.Mismatches == 0 && tol.Atol >= p.Counted.Atol && tol.Rtol >= p.Counted.Rtol,
		r.MaxAbs.Value*(1+nearest32) <= tol.Atol,
		r.MaxRel.Value*(1+nearest32) <= tol.Rtol &&
			tol.Rtol*relFloor <= tol.Atol: // the denominator of MaxRel is at least relFloor
		return nil, nil
	}
	f.Bound, f.Text = true, say("the metrics do not tell whether all is")
	return []Metric{f}, nil
}
