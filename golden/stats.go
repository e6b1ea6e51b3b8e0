package golden

import (
	"math"

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

func statsOf(t *tensor.Tensor) Stats {
	s := Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	finite := 0
	each(t, func(v float64) {
		switch {
		case math.IsNaN(v):
			s.NaN++
		case math.IsInf(v, 0):
			s.Inf++
		default:
			finite++
			s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		}
	})
	if finite == 0 {
		return Stats{NaN: s.NaN, Inf: s.Inf}
	}
	// The values are scaled by a power of two, so that no square overflows.
	_, exp := math.Frexp(max(math.Abs(s.Min), math.Abs(s.Max)))
	scaled := func(f func(x float64)) {
		each(t, func(v float64) {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				f(math.Ldexp(v, -exp))
			}
		})
	}
	n := float64(finite)
	var sum, square, variance float64
	scaled(func(x float64) { sum += x; square += x * x })
	mean := sum / n
	scaled(func(x float64) { variance += (x - mean) * (x - mean) })
	s.Mean = math.Ldexp(mean, exp)
	s.Std = math.Ldexp(math.Sqrt(variance/n), exp)
	s.L2 = min(math.Ldexp(math.Sqrt(square), exp), math.MaxFloat64)
	return s
}

// near reports whether two descriptions can be of the same values: counts and extremes are equal,
// sums are equal up to rounding.
func (s Stats) near(o Stats) bool {
	scale := max(math.Abs(s.Min), math.Abs(s.Max))
	close := func(a, b, scale float64) bool { return math.Abs(a-b) <= sameSum*scale }
	return s.NaN == o.NaN && s.Inf == o.Inf && s.Min == o.Min && s.Max == o.Max &&
		close(s.Mean, o.Mean, scale) && close(s.Std, o.Std, scale) && close(s.L2, o.L2, s.L2)
}

// each calls visit for all values. It decodes a block at a time.
func each(t *tensor.Tensor, visit func(v float64)) {
	var block [4096]float64
	for at := 0; ; {
		n := t.Float64s(block[:], at)
		if n == 0 {
			return
		}
		for _, v := range block[:n] {
			visit(v)
		}
		at += n
	}
}
