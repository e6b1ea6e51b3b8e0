package compare

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/tensor"
)

// Violation is one criterion that does not hold.
type Violation struct {
	// Criterion is one of within, rel_l2, row_rel_l2, cosine, row_cosine, mse, ulp, snr, topk, kl, noise, row_noise, and non_finite, which is
	// judged whatever was asked.
	Criterion string
	Got, Want float64 // the figure and its limit; counts for within, topk (rows) and non_finite
	Text      string  // one line for people
}

// Verdict is the judgement of one pair.
type Verdict struct {
	Pass       bool // all criteria hold; an empty tensor passes (Result.N = 0), the caller decides what that is worth
	Result     Result
	Tolerance  Tolerance // by which Result counts mismatches: Within, or zero if that is not asked for
	Violations []Violation
}

// Judge compares two tensors and applies the criteria. ref64 is the float64 golden that Noise needs, nil otherwise.
//
// NaN and infinities: a pair that is not finite and does not match (see [Tensors]) fails whatever the criteria are.
//
// Errors: [*MisuseError], [*ShapeError], [*FaultError].
func (c Criteria) Judge(golden, actual, ref64 *tensor.Tensor) (v Verdict, err error) {
	if err := c.Validate(); err != nil {
		return Verdict{}, err
	}
	if err := check(golden, actual); err != nil {
		return Verdict{}, err
	}
	if c.TopK > golden.RowLen() && golden.Len() > 0 {
		return Verdict{}, misuse("top-k of %d in rows of %d elements", c.TopK, golden.RowLen())
	}
	if c.Noise != nil {
		if ref64 == nil {
			return Verdict{}, misuse("the noise criterion needs a float64 golden: record one (references: [float32, float64])")
		}
		if err := check(ref64, actual); err != nil {
			return Verdict{}, err
		}
	}
	if c.Within != nil {
		v.Tolerance = *c.Within
	}
	v.Tolerance.EqualNaN = v.Tolerance.EqualNaN || c.EqualNaN
	if v.Result, err = Tensors(golden, actual, v.Tolerance); err != nil {
		return Verdict{}, err
	}
	err = guard(func() error {
		c.judge(&v, golden, actual, ref64)
		return nil
	}, golden, actual, ref64)
	v.Pass = len(v.Violations) == 0
	return v, err
}

func (c Criteria) judge(v *Verdict, golden, actual, ref64 *tensor.Tensor) {
	r := v.Result
	if r.N == 0 {
		return
	}
	if r.BadNonFinite > 0 {
		v.add("non_finite", float64(r.BadNonFinite), 0,
			"%d of %d elements are NaN or infinite and do not match (NaN: golden %d, actual %d; Inf: golden %d, actual %d)%s", r.BadNonFinite, r.N, r.NaNGolden, r.NaNActual, r.InfGolden, r.InfActual, nanHint(r, v.Tolerance))
	}
	if c.Within != nil && r.Mismatches > 0 && exact(golden, actual) {
		v.add("within", float64(r.Mismatches), 0, "%d of %d elements (%.3g %%) differ, and integers are compared exactly; the first is element %d",
			r.Mismatches, r.N, 100*float64(r.Mismatches)/float64(r.N), r.FirstMismatch)
	} else if c.Within != nil && r.Mismatches > 0 {
		v.add("within", float64(r.Mismatches), 0, "%d of %d elements (%.3g %%) are not within atol %g + rtol %g·|golden|, the first is element %d",
			r.Mismatches, r.N, 100*float64(r.Mismatches)/float64(r.N), v.Tolerance.Atol, v.Tolerance.Rtol, r.FirstMismatch)
	}
	v.most("rel_l2", r.RelL2, c.RelL2, "relative L2")
	rowLimit := c.RowRelL2
	if rowLimit == nil {
		rowLimit = c.RelL2
	}
	v.most("row_rel_l2", r.WorstRow.RelL2, rowLimit, fmt.Sprintf("relative L2 of the worst row (row %d)", r.WorstRow.Index))
	if c.Cosine != nil {
		v.least("cosine", r.Cosine(), c.Cosine, "cosine")
		row, distance := worstCosine(golden, actual, r)
		v.least("row_cosine", 1-distance, c.Cosine, fmt.Sprintf("cosine of the worst row (row %d)", row))
	}
	v.most("mse", r.MSE, c.MSE, "mean squared error")
	if c.ULP != nil {
		u := ulps(golden, actual)
		v.most("ulp", u.Max, c.ULP, fmt.Sprintf("largest distance in ULP of %s (element %d)", actual.DType(), u.MaxIndex))
	}
	v.least("snr", r.SNR, c.SNR, "signal-to-noise ratio in dB")
	if c.TopK > 0 {
		if bad, first := topK(golden, actual, c.TopK); bad > 0 {
			v.add("topk", float64(bad), 0, "the top %d are others in %d of %d rows, the first is row %d", c.TopK, bad, r.Rows, first)
		}
	}
	if c.KL != nil {
		row, kl := worstKL(golden, actual)
		v.most("kl", kl, c.KL, fmt.Sprintf("KL divergence of the worst row (row %d)", row))
	}
	if c.Noise != nil {
		n := noise(golden, actual, ref64, r)
		v.most("noise", n.ratio, c.Noise, "error against float64 over the reference's own")
		v.most("row_noise", n.rowRatio, c.Noise, fmt.Sprintf("error against float64 over the reference's own in the worst row (row %d)", n.row))
	}
}

func nanHint(r Result, tol Tolerance) string {
	if r.NaNGolden > 0 && r.NaNActual > 0 && !tol.EqualNaN {
		return "; NaN does not match NaN without EqualNaN"
	}
	return ""
}

func (v *Verdict) add(criterion string, got, want float64, format string, args ...any) {
	v.Violations = append(v.Violations, Violation{Criterion: criterion, Got: got, Want: want, Text: fmt.Sprintf(format, args...)})
}

func (v *Verdict) most(criterion string, got float64, limit *float64, what string) {
	if limit != nil && !(got <= *limit) {
		v.add(criterion, got, *limit, "%s is %s, at most %g is asked", what, figure(got, *limit), *limit)
	}
}

func (v *Verdict) least(criterion string, got float64, limit *float64, what string) {
	if limit != nil && !(got >= *limit) {
		v.add(criterion, got, *limit, "%s is %s, at least %g is asked", what, figure(got, *limit), *limit)
	}
}

// figure writes a number with as many digits as tell it from its limit.
func figure(got, limit float64) string {
	for digits := 4; digits < 17; digits++ {
		s := fmt.Sprintf("%.*g", digits, got)
		if s != fmt.Sprintf("%.*g", digits, limit) || math.IsInf(got, 0) {
			return s
		}
	}
	return fmt.Sprint(got)
}
