package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Criteria is what a pair must fulfil; all that are given must hold. nil (TopK: 0) means that it is not asked for.
type Criteria struct {
	// Within: no mismatch.
	Within *Tolerance
	// RelL2: ‖a−g‖/‖g‖ of the tensor is at most this, and so is that of the worst row (see [Row]), unless RowRelL2 has another
	// limit for it.
	RelL2    *float64
	RowRelL2 *float64
	// Cosine: a·g/(‖a‖‖g‖) of the tensor and of the worst row is at least this. The distance of a row that is much smaller than
	// the others counts less: by max(‖a_row‖, ‖g_row‖)²/(f·RMS)² where that is below 1 (f and RMS as in [Row]); the direction of a
	// row of zeros and rounding means nothing.
	Cosine *float64
	// MSE: Σ(a−g)²/n is at most this.
	MSE *float64
	// ULP: no finite pair is further apart than this many steps of the actual dtype; the golden value is rounded to it first, and −0 is 0.
	ULP *float64
	// SNR: 20·log10(‖g‖/‖a−g‖) is at least this many dB.
	SNR *float64
	// TopK: in each row, the k largest actual values (of equal ones the first) stand where the k largest golden values do; where the golden
	// has equals at the edge, any of them will do.
	TopK int
	// KL: Σ p·ln(p/q) with p = softmax(golden row), q = softmax(actual row) is at most this, in nats, in the worst row.
	KL *float64
	// Noise: ‖a−g64‖ is at most this many times ‖g−g64‖, the reference's own error against a float64 golden. In the worst row
	// as well, where ‖g−g64‖ counts as f times its RMS over the rows at least (f as in [Row]).
	Noise *float64
	// EqualNaN: NaN matches NaN, for all criteria.
	EqualNaN bool
}

// Validate refuses, with a [*MisuseError], criteria without any demand and limits that have no meaning.
func (c Criteria) Validate() error {
	if c.Within != nil {
		if err := c.Within.Validate(); err != nil {
			return err
		}
	}
	limits := []struct {
		name     string
		value    *float64
		min, max float64
	}{
		{"rel_l2", c.RelL2, 0, math.MaxFloat64},
		{"row_rel_l2", c.RowRelL2, 0, math.MaxFloat64},
		{"cosine", c.Cosine, -1, 1},
		{"mse", c.MSE, 0, math.MaxFloat64},
		{"ulp", c.ULP, 0, math.MaxFloat64},
		{"snr", c.SNR, -math.MaxFloat64, math.MaxFloat64},
		{"kl", c.KL, 0, math.MaxFloat64},
		{"noise", c.Noise, 0, math.MaxFloat64},
	}
	asked := c.Within != nil || c.TopK != 0
	for _, l := range limits {
		if l.value == nil {
			continue
		}
		asked = true
		switch v := *l.value; {
		case !finite(v):
			return misuse("%s = %v: want a finite number", l.name, v)
		case v < l.min:
			return misuse("%s = %v: want a number ≥ %g", l.name, v, l.min)
		case v > l.max:
			return misuse("%s = %v: want a number ≤ %g", l.name, v, l.max)
		}
	}
	if c.TopK < 0 {
		return misuse("top-k of %d: want k ≥ 1", c.TopK)
	}
	if !asked {
		return misuse("no criterion is given: nothing would be judged")
	}
	return nil
}

// Default is what is asked where nobody says anything: relative L2 of the tensor and of its worst row, by the coarser of the two types.
//
//	            tensor  worst row
//	float64     1e-9    1e-9
//	float32     1e-4    1e-4
//	float16     4e-3    1e-2
//	bfloat16    3e-2    8e-2
//	8-bit       0.25    0.25      three bits of mantissa
//	8-bit       0.5     0.5       less
//
// A healthy float32 model stays 10 times below. Of 16 bits the roundings of a few blocks alone come to 10 units of 2^−p in the worst row of a
// clean model (measured: 5.2e-3 in float16 after three blocks), so that a row may have 20. Integers and bools on both sides must be equal.
func Default(golden, actual tensor.DType) Criteria {
	if !golden.IsFloat() && !actual.IsFloat() {
		return Criteria{Within: &Tolerance{}}
	}
	l := Limits{}
	for _, d := range []tensor.DType{golden, actual} {
		pass, _ := limits(d)
		l = l.Max(pass)
	}
	return Criteria{RelL2: &l.RelL2, RowRelL2: &l.RowRelL2}
}

// Floor is up to where two tensors "agree" when an error is localised: float64 3e-10, float32 3e-5, the others as [Default]; the coarser type
// decides. It is zero for integers and bools.
func Floor(golden, actual tensor.DType) Limits {
	_, g := limits(golden)
	_, a := limits(actual)
	return g.Max(a)
}

// Limits are the largest relative L2 of a tensor and of its worst row.
type Limits struct{ RelL2, RowRelL2 float64 }

// Max gives the wider of each limit.
func (l Limits) Max(o Limits) Limits {
	return Limits{max(l.RelL2, o.RelL2), max(l.RowRelL2, o.RowRelL2)}
}

// Agrees reports whether the error is within limits, and every NaN and infinity has its match.
func (r Result) Agrees(l Limits) bool {
	return r.BadNonFinite == 0 && r.RelL2 <= l.RelL2 && r.WorstRow.RelL2 <= l.RowRelL2
}

// limits gives what passes, and what agrees.
func limits(d tensor.DType) (pass, agree Limits) {
	switch d {
	case tensor.F64:
		return Limits{1e-9, 1e-9}, Limits{3e-10, 3e-10}
	case tensor.F32:
		return Limits{1e-4, 1e-4}, Limits{3e-5, 3e-5}
	case tensor.F16:
		pass = Limits{4e-3, 1e-2}
	case tensor.BF16:
		pass = Limits{3e-2, 8e-2}
	case tensor.F8E4M3FN, tensor.F8E4M3FNUZ:
		pass = Limits{0.25, 0.25}
	case tensor.F8E5M2, tensor.F8E5M2FNUZ, tensor.F8E8M0FNU:
		pass = Limits{0.5, 0.5}
	}
	return pass, pass
}
