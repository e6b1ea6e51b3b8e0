package compare

import "github.com/goparity/goparity/tensor"

// Default is what is asked where no one says anything: relative L2 of the tensor and of its worst
// row, by the coarser of the two types.
//
//	            tensor  worst row
//	float64     1e-9    1e-9
//	float32     1e-4    1e-4
//	float16     4e-3    1e-2
//	bfloat16    3e-2    8e-2
//	8-bit       0.25    0.25      three bits of mantissa
//	8-bit       0.5     0.5       less
//
// A healthy float32 model stays 6 times below. Of 16 bits the roundings of a few blocks alone come
// to 10 units of 2^−p in the worst row of a clean model (measured: 5.2e-3 in float16 after three
// blocks), so that a row may have 20. Integers and bools on both sides must be equal.
func Default(golden, actual tensor.DType) Criteria {
	if !golden.IsFloat() && !actual.IsFloat() {
		return Criteria{Atol: 0, Rtol: 0}
	}
	return defaults[golden].pass.Max(defaults[actual].pass).Criteria()
}

// Floor is up to where two tensors "agree" when an error is localised: float64 3e-10, float32 3e-5,
// the others as [Default]; the coarser type decides. It is zero for integers and bools.
func Floor(golden, actual tensor.DType) Limits {
	return defaults[golden].agree.Max(defaults[actual].agree)
}

// Limits are the largest relative L2 of a tensor and of its worst row.
type Limits struct{ RelL2, RowRelL2 float64 }

// Criteria asks for the limits.
func (l Limits) Criteria() Criteria { return Criteria{RelL2: l.RelL2, RowRelL2: l.RowRelL2} }

// Limits are those on relative L2, zero where there is none.
func (c Criteria) Limits() Limits { return Limits{RelL2: c[RelL2], RowRelL2: c[RowRelL2]} }

// Max returns the wider of each limit.
func (l Limits) Max(o Limits) Limits {
	return Limits{max(l.RelL2, o.RelL2), max(l.RowRelL2, o.RowRelL2)}
}

// Agrees reports whether the error is within limits, and every NaN and infinity has its match.
func (r Result) Agrees(l Limits) bool {
	return r.BadNonFinite == 0 && r.RelL2 <= l.RelL2 && r.WorstRow.RelL2 <= l.RowRelL2
}
