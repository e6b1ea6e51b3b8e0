package edit

import (
	"math"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// falling returns the base b and the length n of a table that repeats n falling numbers, the first of
// which are f·b^(−i/n). It is geometric if all are, and scaled if the last are smaller, as those of rotary
// embeddings for long contexts.
func falling(x []float64) (b float64, n int, geometric, scaled bool) {
	if len(x) < 4 || x[0] <= 0 {
		return 0, 0, false, false
	}
	for n = 1; n < len(x) && x[n] < x[n-1] && x[n] > 0; n++ {
	}
	if n < 4 || len(x)%n != 0 || len(x)/n > 8 {
		return 0, 0, false, false
	}
	q := x[1] / x[0]
	b = math.Round(math.Pow(q, -float64(n))*1e3) / 1e3
	geometric = true
	for i := 1; i < len(x); i++ {
		if i%n != 0 && math.Abs(x[i]/x[i-1]-q) > 1e-3*q {
			geometric = false
		}
	}
	return b, n, geometric, !geometric && x[n-1] < (1-1e-3)*x[0]*math.Pow(q, float64(n-1))
}

// rebased is the i-th of n numbers of a table with base b, with another base.
func rebased(x float64, i, n int, b, other float64) float64 {
	return x * math.Pow(b/other, float64(i)/float64(n))
}

// constant writes a value of numbers that are made of others.
func (w *writer) constant(v program.Value, f func(i int, x float64) float64, of *replay.Array) program.ID {
	x := of.Floats()
	for i := range x {
		x[i] = f(i, x[i])
	}
	return w.numbers(x, v.Shape, tensor.F32)
}
