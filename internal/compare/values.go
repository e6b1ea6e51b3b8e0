package compare

import (
	"math"
	"math/bits"

	"github.com/goparity/goparity/tensor"
)

// exact reports whether a pair must be equal: integers or bools on a side.
func exact(golden, actual *tensor.Tensor) bool {
	return !golden.DType().IsFloat() || !actual.DType().IsFloat()
}

// is64 reports whether float64 would round the numbers of a type.
func is64(d tensor.DType) bool { return d == tensor.I64 || d == tensor.U64 }

// values has elements of two tensors in float64.
type values struct {
	g, a, d []float64 // d = a − g, rounded once, also of integers of 64 bits
	ints    [2][]int64
}

// read decodes n elements from start.
func (v *values) read(golden, actual *tensor.Tensor, start, n int) {
	v.g, v.a, v.d = grow(&v.g, n), grow(&v.a, n), grow(&v.d, n)
	golden.Float64s(v.g, start)
	actual.Float64s(v.a, start)
	for i, g := range v.g {
		v.d[i] = v.a[i] - g
	}
	if !is64(golden.DType()) && !is64(actual.DType()) {
		return
	}
	var float, unsigned [2]bool
	for side, t := range [2]*tensor.Tensor{golden, actual} {
		float[side], unsigned[side] = t.DType().IsFloat(), t.DType() == tensor.U64
		if !float[side] {
			t.Int64s(grow(&v.ints[side], n), start)
		}
	}
	for i := range v.d {
		switch {
		case float[0]:
			v.d[i] += rounded(v.ints[1][i], unsigned[1])
		case float[1]:
			v.d[i] -= rounded(v.ints[0][i], unsigned[0])
		default:
			v.d[i] = difference(v.ints[0][i], v.ints[1][i], unsigned)
		}
	}
}

// rounded is what rounding an integer to float64 takes away, at most 1024.
func rounded(v int64, unsigned bool) float64 {
	var near uint64 // modulo 2^64
	switch x := toFloat(v, unsigned); {
	case x == 0x1p64:
	case x < 0:
		near = uint64(int64(x))
	default:
		near = uint64(x)
	}
	return float64(int64(uint64(v) - near))
}

// difference is a − g of integers, 0 only of equal ones.
func difference(g, a int64, unsigned [2]bool) float64 {
	switch below := g < 0 && !unsigned[0]; {
	case below != (a < 0 && !unsigned[1]): // of two signs: |a| + |g|
		if below {
			g = -g
		} else {
			a = -a
		}
		sum, carry := bits.Add64(uint64(g), uint64(a), 0)
		d := float64(sum) + float64(carry)*0x1p64
		if below {
			return d
		}
		return -d
	case uint64(a) >= uint64(g): // two's complements of one sign are in order, too
		return float64(uint64(a) - uint64(g))
	}
	return -float64(uint64(g) - uint64(a))
}

func toFloat(v int64, unsigned bool) float64 {
	if unsigned {
		return float64(uint64(v))
	}
	return float64(v)
}

// pair is one element of both tensors.
type pair struct {
	index, row, column int
	g, a               float64
	d                  float64 // |a−g|
	finite             bool    // both values are finite
}

// mismatch applies the rule to a pair. equal says that a side has integers.
func (p *pair) mismatch(tol Tolerance, equal bool) bool {
	if equal && p.finite {
		return p.d != 0
	}
	return !tol.matches(p.g, p.a)
}

// scan calls f for the pairs from start to end, in order. f must not keep its argument. It is for
// what is read after the first pass, which need not be fast.
func scan(golden, actual *tensor.Tensor, start, end int, f func(*pair)) {
	const step = 2048 // the buffers stay in the first-level cache
	var v values
	var p pair
	rowLen := golden.RowLen()
	for ; start < end; start += step {
		v.read(golden, actual, start, min(step, end-start))
		p.index, p.row, p.column = start, start/rowLen, start%rowLen
		for i, g := range v.g {
			p.g, p.a, p.d, p.finite = g, v.a[i], math.Abs(v.d[i]), finite(g) && finite(v.a[i])
			f(&p)
			p.index++
			if p.column++; p.column == rowLen {
				p.row, p.column = p.row+1, 0
			}
		}
	}
}
