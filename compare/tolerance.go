package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Tolerance is how large |a − g| may be: Atol + Rtol·|g|. Its zero value asks for equal elements.
type Tolerance struct {
	Atol, Rtol float64
	EqualNaN   bool // NaN matches NaN
}

// Validate refuses tolerances that are negative, NaN or infinite with a [*MisuseError].
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

// BelowRounding reports whether the tolerance is below the rounding of type d: a right value of
// magnitude 1 that was rounded to d can be off by needRtol = 2^−p (p significant bits), and that is
// more than Atol + Rtol. An Rtol of needRtol passes every rounded value that is not subnormal.
// Integers and bools are not rounded.
func (t Tolerance) BelowRounding(d tensor.DType) (needRtol float64, below bool) {
	needRtol = d.Epsilon()
	return needRtol, t.Atol+t.Rtol < needRtol
}
