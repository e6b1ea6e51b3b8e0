package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Stats describes the values of one tensor. The figures are over the finite values, and 0 if there
// are none; NaN and Inf count the others.
type Stats struct {
	Min, Max float64
	Mean     float64
	Std      float64 // √(Σ(x − mean)²/n), n the number of finite values
	L2       float64 // √Σx², at most the largest float64
	NaN, Inf int
}

// StatsOf reads a tensor once, unless squares of float64 leave the range. The error is a
// [*FaultError] if its file is truncated meanwhile.
func StatsOf(t *tensor.Tensor) (s Stats, err error) {
	err = guard(func() error {
		s = statsOf(t)
		return nil
	}, t)
	return s, err
}

func statsOf(t *tensor.Tensor) Stats {
	var all spread
	all.pivot = firstFinite(t)
	all.min, all.max = math.Inf(1), math.Inf(-1)
	values := make([]float64, min(t.Len(), pieceLen))
	for at := 0; at < t.Len(); at += pieceLen {
		all.add(values[:t.Float64s(values, at)])
	}
	most := max(-all.min, all.max)
	if all.finite > 0 && most > 0 && !(squarable(all.xx.value()) && all.dd.value() <= math.MaxFloat64) {
		return all.scaled(t, exponent(most))
	}
	return all.stats()
}

// spread is what the figures are made of. The sums are over x − pivot, because a variance from
// Σx² loses its digits where the values are far from zero.
type spread struct {
	pivot    float64 // the first finite value
	d, dd    sum     // Σ(x − pivot), Σ(x − pivot)²
	xx       sum     // Σx²
	min, max float64
	finite   int
	nan, inf int
}

// add adds a block of any values.
func (m *spread) add(values []float64) {
	var d, dd, xx float64
	for _, x := range values {
		switch {
		case math.IsNaN(x):
			m.nan++
		case math.IsInf(x, 0):
			m.inf++
		default:
			m.finite++
			m.min, m.max = min(m.min, x), max(m.max, x)
			xx += float64(x * x)
			x -= m.pivot
			d += x
			dd += float64(x * x)
		}
	}
	m.d.add(d)
	m.dd.add(dd)
	m.xx.add(xx)
}

func (m *spread) stats() Stats {
	s := Stats{NaN: m.nan, Inf: m.inf}
	if m.finite == 0 {
		return s
	}
	n := float64(m.finite)
	mean := m.d.value() / n
	s.Min, s.Max, s.Mean = m.min, m.max, m.pivot+mean
	s.Std = math.Sqrt(max(m.dd.value()/n-float64(mean*mean), 0))
	s.L2 = math.Sqrt(m.xx.value())
	return s
}

// scaled reads again, all values times 2^−exp, so that no square leaves the range.
func (m *spread) scaled(t *tensor.Tensor, exp int) Stats {
	small := spread{pivot: math.Ldexp(m.pivot, -exp), min: math.Inf(1), max: math.Inf(-1)}
	values := make([]float64, min(t.Len(), pieceLen))
	for at := 0; at < t.Len(); at += pieceLen {
		block := values[:t.Float64s(values, at)]
		for i := range block {
			block[i] = math.Ldexp(block[i], -exp)
		}
		small.add(block)
	}
	s := small.stats()
	s.Min, s.Max = m.min, m.max
	s.Mean, s.Std = math.Ldexp(s.Mean, exp), math.Ldexp(s.Std, exp)
	s.L2 = min(math.Ldexp(s.L2, exp), math.MaxFloat64)
	return s
}

// firstFinite returns the first finite value, 0 if there is none.
func firstFinite(t *tensor.Tensor) float64 {
	var block [stepLen]float64
	for at := 0; at < t.Len(); at += stepLen {
		for _, x := range block[:t.Float64s(block[:], at)] {
			if finite(x) {
				return x
			}
		}
	}
	return 0
}
