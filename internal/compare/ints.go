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

// whole reports whether a pair is compared as integers of 64 bits.
func whole(golden, actual *tensor.Tensor) bool {
	g, a := golden.DType(), actual.DType()
	return !g.IsFloat() && !a.IsFloat() && (is64(g) || is64(a))
}

// mixed reports whether a pair has integers of 64 bits on one side and floats on the other.
func mixed(golden, actual *tensor.Tensor) bool {
	g, a := golden.DType(), actual.DType()
	return is64(g) && a.IsFloat() || g.IsFloat() && is64(a)
}

// remainders returns what a − g of n elements of a mixed pair has more than the difference of both
// values in float64, because these round the integers.
func remainders(golden, actual *tensor.Tensor, start, n int) []float64 {
	side, sign := golden, -1.0
	if is64(actual.DType()) {
		side, sign = actual, 1
	}
	ints, out := make([]int64, n), make([]float64, n)
	side.Int64s(ints, start)
	for i, v := range ints {
		out[i] = sign * remainder(v, side.DType() == tensor.U64)
	}
	return out
}

// remainder is what rounding an integer to float64 takes away, at most 1024.
func remainder(v int64, unsigned bool) float64 {
	var rounded uint64 // modulo 2^64
	switch x := toFloat(v, unsigned); {
	case x == 0x1p64:
	case x < 0:
		rounded = uint64(int64(x))
	default:
		rounded = uint64(x)
	}
	return float64(int64(uint64(v) - rounded))
}

func is64(d tensor.DType) bool { return d == tensor.I64 || d == tensor.U64 }

// intRowOf is rowOf for integers on both sides, of 64 bits on at least one: float64 would round
// them.
func (f *tally) intRowOf(g, a []int64, ru *rule) (r rowSums) {
	for i, gv := range g {
		d := intDistance(gv, a[i], ru.unsigned)
		f.pair(&r, toFloat(gv, ru.unsigned[0]), toFloat(a[i], ru.unsigned[1]), d.float(), ru)
		if f.wide.less(d) { // rounded distances may be equal although the integers differ
			f.wide = d
		}
	}
	return r
}

func toFloat(v int64, unsigned bool) float64 {
	if unsigned {
		return float64(uint64(v))
	}
	return float64(v)
}

// intDistance is |a − g|. Rounded to float64 it is 0 only for equal integers.
func intDistance(g, a int64, unsigned [2]bool) wide {
	lo, borrow := bits.Sub64(uint64(a), uint64(g), 0)
	hi, _ := bits.Sub64(high(a, unsigned[1]), high(g, unsigned[0]), borrow)
	if int64(hi) < 0 {
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	return wide{hi, lo}
}

// wide is an unsigned integer of 128 bits.
type wide struct{ hi, lo uint64 }

func (w wide) less(o wide) bool { return w.hi < o.hi || w.hi == o.hi && w.lo < o.lo }

func (w wide) float() float64 { return math.Ldexp(float64(w.hi), 64) + float64(w.lo) }

// high returns the upper half of v in 128 bits.
func high(v int64, unsigned bool) uint64 {
	if unsigned {
		return 0
	}
	return uint64(v >> 63)
}
