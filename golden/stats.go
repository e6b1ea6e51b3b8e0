package golden

import (
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// Stats describes the values of a tensor for people. The figures are over the finite values, and 0
// if there are none; NaN and Inf count the others.
type Stats struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"` // √(Σ(x − mean)²/n), n the number of finite values
	L2   float64 `json:"l2"`  // √Σx², at most the largest float64
	NaN  int     `json:"nan"`
	Inf  int     `json:"inf"`
}

func statsOf(t *tensor.Tensor) (Stats, error) {
	s, err := compare.StatsOf(t)
	return Stats(s), err
}

// near reports whether two descriptions can be of the same values: counts and extremes are equal,
// sums are equal up to rounding.
func (s Stats) near(o Stats) bool {
	scale := max(math.Abs(s.Min), math.Abs(s.Max))
	close := func(a, b, scale float64) bool { return math.Abs(a-b) <= sameSum*scale }
	return s.NaN == o.NaN && s.Inf == o.Inf && s.Min == o.Min && s.Max == o.Max &&
		close(s.Mean, o.Mean, scale) && close(s.Std, o.Std, scale) && close(s.L2, o.L2, s.L2)
}
