package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Stats describes the values of one tensor. The metrics are over the finite values, and 0 if there
// are none; NaN and Inf count the others.
type Stats struct {
	Min, Max, Mean float64
	NaN, Inf       int
}

// StatsOf reads a tensor once. The error is a [*FaultError] if its file is truncated meanwhile.
func StatsOf(t *tensor.Tensor) (Stats, error) {
	return guard(func() (Stats, error) { return statsOf(t), nil }, t)
}

func statsOf(t *tensor.Tensor) Stats {
	s := Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	var all sum
	values := make([]float64, min(t.Len(), pieceLen))
	for at := 0; at < t.Len(); at += pieceLen {
		block := 0.0
		for _, x := range values[:t.Float64s(values, at)] {
			switch {
			case math.IsNaN(x):
				s.NaN++
			case math.IsInf(x, 0):
				s.Inf++
			default:
				s.Min, s.Max = min(s.Min, x), max(s.Max, x)
				block += x
			}
		}
		all.add(block)
	}
	n := t.Len() - s.NaN - s.Inf
	if n == 0 {
		return Stats{NaN: s.NaN, Inf: s.Inf}
	}
	s.Mean = all.value() / float64(n)
	return s
}

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
