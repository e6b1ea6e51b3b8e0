package op

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// LeastSquares returns the f with Σ fₚ·columnₚ nearest to y, by the normal equations; nil if the
// columns do not tell it.
func LeastSquares(columns [][]float64, y []float64) []float64 {
	n := len(columns)
	if n == 0 || len(y) < n {
		return nil
	}
	a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range columns {
		for j := i; j < n; j++ {
			a.SetSym(i, j, floats.Dot(columns[i], columns[j]))
		}
		b.SetVec(i, floats.Dot(columns[i], y))
	}
	var c mat.Cholesky
	if !c.Factorize(a) || c.Cond() > normalCond {
		return nil
	}
	var f mat.VecDense
	if c.SolveVecTo(&f, b) != nil {
		return nil
	}
	return f.RawVector().Data
}

// Minimum returns where f is smallest between low and high: the best point of a grid, then golden
// sections around it.
func Minimum(low, high float64, f func(float64) float64) float64 {
	best, at := math.Inf(1), low
	step := (high - low) / gridSteps
	for i := range gridSteps + 1 {
		x := low + float64(i)*step
		if m := f(x); m < best {
			best, at = m, x
		}
	}
	a, b := at-step, at+step
	const phi = 0.6180339887498949
	c, d := b-phi*(b-a), a+phi*(b-a)
	fc, fd := f(c), f(d)
	for range goldenSections {
		if fc < fd {
			b, d, fd = d, c, fc
			c = b - phi*(b-a)
			fc = f(c)
		} else {
			a, c, fc = c, d, fd
			d = a + phi*(b-a)
			fd = f(d)
		}
	}
	return (a + b) / 2
}
