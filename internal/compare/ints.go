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

func toFloat(v int64, unsigned bool) float64 {
	if unsigned {
		return float64(uint64(v))
	}
	return float64(v)
}

// intDistance is |a − g|, rounded once: it is 0 only for equal integers.
func intDistance(g, a int64, unsigned [2]bool) float64 {
	x, y := uint64(g), uint64(a)
	switch negative := g < 0 && !unsigned[0]; {
	case negative == (a < 0 && !unsigned[1]):
		return float64(max(x, y) - min(x, y))
	case negative:
		x = -x
	default:
		y = -y
	}
	low, high := bits.Add64(x, y, 0)
	return math.Ldexp(float64(high), 64) + float64(low)
}
