package op

import (
	"math"

	"gonum.org/v1/gonum/floats"
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
func All(x []float64, is func(float64) bool) bool { return Count(x, is) == len(x) }

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

// Times returns x·y, element by element.
func Times(x, y []float64) []float64 {
	if len(x) == 0 || len(x) != len(y) {
		return nil
	}
	return floats.MulTo(make([]float64, len(x)), x, y)
}

// Minus returns x − y.
func Minus(x, y []float64) []float64 { return floats.SubTo(make([]float64, len(x)), x, y) }

// Softmax replaces x by exp(x) / Σexp(x).
func Softmax(x []float64) {
	top, sum := floats.Max(x), 0.0
	for i := range x {
		x[i] = math.Exp(x[i] - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}
