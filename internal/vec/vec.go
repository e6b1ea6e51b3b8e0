// Package vec has what is done with numbers in a row: their size, their distance, their order, and what a type of fewer
// bits makes of them; with many rows on all cores; and with the zeros and ones of attention masks, which engines write in
// several ways.
package vec

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/internal/mapfile"
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

// AllSame reports whether all numbers are one.
func AllSame(x []float64) bool { return All(x, func(v float64) bool { return v == x[0] }) }

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

// Transposition returns, for element i of a tensor with axes x and y exchanged and read in
// row-major order, its number in the tensor.
func Transposition(shape []int, x, y int) func(i int) int {
	swapped := slices.Clone(shape)
	swapped[x], swapped[y] = shape[y], shape[x]
	strides := make([]int, len(shape))
	n := 1
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = n
		n *= shape[k]
	}
	strides[x], strides[y] = strides[y], strides[x]
	return func(i int) int {
		out := 0
		for k := len(swapped) - 1; k >= 0; k-- {
			out += i % swapped[k] * strides[k]
			i /= swapped[k]
		}
		return out
	}
}

// Select returns columns of rows of width: column i of the result is column from[i].
func Select(x []float64, width int, from []int) []float64 {
	if x == nil {
		return nil
	}
	out := make([]float64, 0, len(x)/width*len(from))
	for r := 0; r < len(x); r += width {
		for _, f := range from {
			out = append(out, x[r+f])
		}
	}
	return out
}

// Runs returns of how many runs of neighbouring columns a permutation consists.
func Runs(from []int) int {
	n := 1
	for i := 1; i < len(from); i++ {
		if from[i] != from[i-1]+1 {
			n++
		}
	}
	return n
}

// BlockSize returns the largest number of columns that stay together in a permutation that moves
// blocks of this size.
func BlockSize(from []int) int {
	for d := len(from) / 2; d > 1; d-- {
		if len(from)%d == 0 && movesBlocks(from, d) {
			return d
		}
	}
	return 1
}

func movesBlocks(from []int, d int) bool {
	for i, f := range from {
		if first := from[i-i%d]; first%d != 0 || f != first+i%d {
			return false
		}
	}
	return true
}

// FollowsValue is the part of the squared errors e that follows from the values x beside them: the
// elements are sorted by value, and each error is compared with the mean of its two neighbours'. It is
// near 1 where the error is a smooth function of the value, and near 0 for noise, which misses that
// mean by 3/2 of its variance. 0 for fewer than 64 elements or without an error; of more than 2^16
// elements some are looked at. NaN and infinities are left out.
func FollowsValue(x, e []float64) float64 {
	var at []int
	for _, i := range Spread(len(x), followsMost) {
		if IsFinite(x[i]) && IsFinite(e[i]) {
			at = append(at, i)
		}
	}
	if len(at) < followsLeast {
		return 0
	}
	slices.SortFunc(at, func(i, j int) int { return cmp.Or(cmp.Compare(x[i], x[j]), i-j) })
	var missed, all float64
	for k := 1; k < len(at)-1; k++ {
		d := e[at[k]] - (e[at[k-1]]+e[at[k+1]])/2
		missed, all = missed+d*d, all+e[at[k]]*e[at[k]]
	}
	if all == 0 {
		return 0
	}
	return max(0, 1-missed/(1.5*all))
}

// Narrow is a type of fewer bits than the one in which numbers are kept.
type Narrow struct {
	Name     string
	Bits     int     // of the significand, the leading one included
	Least    int     // the exponent of the smallest normal number
	Limit    float64 // the largest finite number
	Saturate bool    // larger numbers become Limit
}

// Half is IEEE 754 binary16.
var Half = Narrow{"float16", 11, -14, 65504, false}

// Narrows are the types that numbers are rounded to (float8: arXiv 2209.05433).
var Narrows = []Narrow{
	{"bfloat16", 8, -126, math.MaxFloat32, false},
	Half,
	{"float8_e4m3", 4, -6, 448, true},
	{"float8_e5m2", 3, -14, 57344, true},
	{"tf32", 11, -126, math.MaxFloat32, false},
}

// Overflowing are the types that models overflow.
var Overflowing = []Narrow{
	Half, {Name: "float8_e4m3", Limit: 448}, {Name: "float8_e4m3fnuz", Limit: 240},
	{Name: "float8_e5m2", Limit: 57344},
}

// Round rounds to the type, to nearest and ties to even.
func (n Narrow) Round(x float64) float64 {
	if x == 0 || !IsFinite(x) {
		return x
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-1, n.Least)-(n.Bits-1))
	y := math.RoundToEven(x/unit) * unit
	if n.Saturate {
		return Clip(y, n.Limit)
	}
	return y
}

// Epsilon is the largest relative error of rounding.
func (n Narrow) Epsilon() float64 { return math.Ldexp(1, -n.Bits) }

// Holds reports whether a number is one of the type.
func (n Narrow) Holds(x float64) bool { return n.Round(x) == x }

// Clip returns x between −limit and limit.
func Clip(x, limit float64) float64 { return math.Max(-limit, math.Min(limit, x)) }

// NarrowerThan lists the types that have clearly fewer bits than others.
func NarrowerThan(types ...tensor.DType) []Narrow {
	return slices.DeleteFunc(slices.Clone(Narrows), func(n Narrow) bool {
		return slices.ContainsFunc(types, func(t tensor.DType) bool { return n.Epsilon() < clearlyFewer*t.Epsilon() })
	})
}

// Each calls f for 0 … n−1 on all cores, and joins the errors in that order. When ctx ends, it makes
// no further calls, and the cause of ctx is among the errors. A call that reads a file which cannot
// be read any more returns the [*mapfile.Fault].
func Each(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[i] = mapfile.Guard(func() error { return f(i) })
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}
