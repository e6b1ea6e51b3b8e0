package compare

import "math"

// sum adds numbers with Neumaier's compensation: its error does not grow with their count.
type sum struct{ s, c float64 }

func (s *sum) add(x float64) {
	x = float64(x) // where x is a product, arm64 would add it unrounded
	t := s.s + x
	if math.Abs(s.s) >= math.Abs(x) {
		s.c += (s.s - t) + x
	} else {
		s.c += (x - t) + s.s
	}
	s.s = t
}

func (s *sum) value() float64 {
	if v := s.s + s.c; !math.IsNaN(v) {
		return v
	}
	return s.s // it overflowed, so c is NaN
}

// scale returns exponents of two by which d = a − g, g and a are divided before they are squared.
// They are zero except for float64 values whose squares overflow or vanish.
type scale struct{ d, g, a int }

func (s scale) zero() bool { return s == scale{} }

// squarable reports whether a sum of squares is far enough from both ends of the range, so that the
// squares that vanished are less than its rounding.
func squarable(s float64) bool { return s >= 1e-270 && s <= math.MaxFloat64 }

func exponent(x float64) int {
	if x == 0 {
		return 0
	}
	if math.IsInf(x, 0) { // a difference of finite values
		return 1025
	}
	_, e := math.Frexp(x)
	return e
}
