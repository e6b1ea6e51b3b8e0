package compare

import (
	"math"
	"slices"

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
	all := spreadOf(t, 0)
	s := all.stats(0)
	if by := inRange(max(all.xx.value(), all.dd.value())); by != 0 && t.DType() == tensor.F64 {
		scaled := spreadOf(t, by).stats(by)
		s.Mean, s.Std, s.L2 = scaled.Mean, scaled.Std, scaled.L2
	}
	return s
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

// spreadOf reads a tensor, of which all values count times 2^by.
func spreadOf(t *tensor.Tensor, by int) *spread {
	all := &spread{min: math.Inf(1), max: math.Inf(-1)}
	values := make([]float64, min(t.Len(), pieceLen))
	for at := 0; at < t.Len(); at += pieceLen {
		block := values[:t.Float64s(values, at)]
		if by != 0 {
			for i := range block {
				block[i] = math.Ldexp(block[i], by)
			}
		}
		all.add(block)
	}
	return all
}

// add adds a block of any values.
func (m *spread) add(values []float64) {
	if at := slices.IndexFunc(values, finite); m.finite == 0 && at >= 0 {
		m.pivot = values[at]
	}
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

func (m *spread) stats(by int) Stats {
	s := Stats{NaN: m.nan, Inf: m.inf}
	if m.finite == 0 {
		return s
	}
	n := float64(m.finite)
	mean := m.d.value() / n
	s.Min, s.Max, s.Mean = m.min, m.max, math.Ldexp(m.pivot+mean, -by)
	s.Std = math.Ldexp(math.Sqrt(max(m.dd.value()/n-float64(mean*mean), 0)), -by)
	s.L2 = min(math.Ldexp(math.Sqrt(m.xx.value()), -by), math.MaxFloat64)
	return s
}
