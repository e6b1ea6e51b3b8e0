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
