package compare

import (
	"fmt"
	"math"
)

// withAtol: the elements are judged once, with [Atol].
func withAtol(Pair, float64) ([]Figure, error) { return nil, nil }

// within counts the elements outside of the tolerance.
func within(p Pair, _ float64) ([]Figure, error) {
	r, tol := p.Result, p.Asked
	f := Figure{Key: "within", Value: float64(r.Mismatches)}
	switch share := 100 * float64(r.Mismatches) / float64(r.N); {
	case p.Exact:
		f.Text = fmt.Sprintf("%d of %d elements (%.3g %%) differ, and integers are compared exactly; the first is element %d",
			r.Mismatches, r.N, share, r.FirstMismatch)
	case p.Golden == nil:
		return recalled(p)
	default:
		f.Text = fmt.Sprintf("%d of %d elements (%.3g %%) are not within atol %g + rtol %g·|golden|, the first is element %d",
			r.Mismatches, r.N, share, tol.Atol, tol.Rtol, r.FirstMismatch)
	}
	return []Figure{f}, nil
}

// recalled decides |a−g| ≤ atol + rtol·|g| where the figures of a report tell: its mismatches were
// counted by another tolerance, and of the elements only the two extremes are known.
func recalled(p Pair) ([]Figure, error) {
	r, tol := p.Result, p.Asked
	outside := func(x Extreme) bool {
		return x.Index >= 0 && math.Abs(x.Actual-x.Golden) > tol.Atol+tol.Rtol*math.Abs(x.Golden)
	}
	f := Figure{Key: "within", Value: 1, Text: fmt.Sprintf("max |a−g| is %.3g: not within atol %g + rtol %g·|golden|", r.MaxAbs.Value, tol.Atol, tol.Rtol)}
	switch {
	case r.Mismatches > 0 && tol.Atol <= p.Counted.Atol && tol.Rtol <= p.Counted.Rtol, outside(r.MaxAbs), outside(r.MaxRel):
		return []Figure{f}, nil
	case r.Mismatches == 0 && tol.Atol >= p.Counted.Atol && tol.Rtol >= p.Counted.Rtol, r.MaxAbs.Value <= tol.Atol,
		r.MaxRel.Value*(1+1e-12) <= tol.Rtol && tol.Rtol*relFloor <= tol.Atol: // the denominator of MaxRel is relFloor at least
		return nil, nil
	}
	f.Bound = true
	f.Text = fmt.Sprintf("max |a−g| is %.3g: the figures do not tell whether all is within atol %g + rtol %g·|golden|", r.MaxAbs.Value, tol.Atol, tol.Rtol)
	return []Figure{f}, nil
}
