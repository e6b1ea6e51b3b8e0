package compare

import (
	"math"
	"math/bits"

	"github.com/goparity/goparity/tensor"
)

// exact reports whether a pair must be equal: integers or bools on both sides.
func exact(golden, actual *tensor.Tensor) bool {
	return !golden.DType().IsFloat() && !actual.DType().IsFloat()
}

func is64(d tensor.DType) bool { return d == tensor.I64 || d == tensor.U64 }

// blockInt is block for integers of 64 bits on one side at least: float64 would not hold them.
func blockInt(g, a []int64, st *state) segment {
	s := segment{abs: -1, rel: st.rel, absAt: -1, relAt: -1, first: -1}
	for i, gv := range g {
		s.pair(i, toFloat(gv, st.unsigned[0]), toFloat(a[i], st.unsigned[1]), intDistance(gv, a[i], st.unsigned), st)
	}
	return s
}

func toFloat(v int64, unsigned bool) float64 {
	if unsigned {
		return float64(uint64(v))
	}
	return float64(v)
}

// intDistance is |a − g|, in 128 bits before it is rounded to float64: it is 0 only for equal integers.
func intDistance(g, a int64, unsigned [2]bool) float64 {
	lo, borrow := bits.Sub64(uint64(a), uint64(g), 0)
	hi, _ := bits.Sub64(high(a, unsigned[1]), high(g, unsigned[0]), borrow)
	if int64(hi) < 0 {
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	return math.Ldexp(float64(hi), 64) + float64(lo)
}

// high is the upper half of v in 128 bits.
func high(v int64, unsigned bool) uint64 {
	if unsigned {
		return 0
	}
	return uint64(v >> 63)
}
