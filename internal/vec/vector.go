package vec

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/tensor"
)

// Relative returns ‖a − b‖ / ‖b‖: +Inf if the lengths differ or an element is not finite, 0 if all
// elements are equal.
func Relative(a, b []float64) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return math.Inf(1)
	}
	var d, n float64
	for i, x := range b {
		d += (a[i] - x) * (a[i] - x)
		n += x * x
	}
	switch r := math.Sqrt(d / n); {
	case d == 0:
		return 0
	case math.IsNaN(r):
		return math.Inf(1)
	default:
		return r
	}
}

// RootMeanSquare returns √(Σx²/n), 0 for no elements.
func RootMeanSquare(x []float64) float64 {
	return math.Sqrt(floats.Dot(x, x) / float64(max(len(x), 1)))
}

// MaxAbs returns the largest finite |x|.
func MaxAbs(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		if a := math.Abs(v); a > m && !math.IsInf(a, 0) {
			m = a
		}
	}
	return m
}

// Project returns the f with f·x nearest to y, over the elements that are finite; 0 if x is 0.
func Project(x, y []float64) float64 {
	var xy, xx float64
	for i, v := range x {
		if d := v * y[i]; !math.IsNaN(d) && !math.IsInf(d, 0) {
			xy += d
			xx += v * v
		}
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// IsFinite reports whether x is neither NaN nor infinite.
func IsFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Count returns the number of elements for which is holds.
func Count(x []float64, is func(float64) bool) (n int) {
	for _, v := range x {
		if is(v) {
			n++
		}
	}
	return n
}

// All reports whether is holds for every element.
func All(x []float64, is func(float64) bool) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return !is(v) })
}

// Map returns f of each element.
func Map(x []float64, f func(float64) float64) []float64 {
	if x == nil {
		return nil
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(v)
	}
	return out
}

// Scaled returns f·x.
func Scaled(x []float64, f float64) []float64 {
	return Map(x, func(v float64) float64 { return f * v })
}

// Minus returns x − y.
func Minus(x, y []float64) []float64 { return floats.SubTo(make([]float64, len(x)), x, y) }

// Read decodes rows of a tensor with rows of width, one after the other; nil if they are too many
// to hold.
func Read(t *tensor.Tensor, width int, rows []int) []float64 {
	if len(rows)*width > mostRead {
		return nil
	}
	out := make([]float64, len(rows)*width)
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[j-1]+1 {
			j++
		}
		t.Float64s(out[i*width:j*width], rows[i]*width)
		i = j
	}
	return out
}

// ReadAll decodes a tensor.
func ReadAll(t *tensor.Tensor) []float64 {
	if t == nil {
		return nil
	}
	return Read(t, t.Len(), []int{0})
}

// Sequence returns 0, 1, …, n−1.
func Sequence(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Spread returns n of m rows: the first, the last and others evenly between; all if m ≤ n.
func Spread(m, n int) []int {
	if m <= n {
		return Sequence(m)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(int64(i) * int64(m-1) / int64(n-1))
	}
	return out
}

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
