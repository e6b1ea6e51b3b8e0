package structure

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// narrower are the types in which a float32 may have been rounded, by the lowest bits of it that
// are zero then.
var narrower = []struct {
	bits uint32
	unit float64
}{{1<<16 - 1, tensor.BF16.Epsilon()}, {1<<13 - 1, tensor.F16.Epsilon()}}

// Grid is the rounding (relative, of the unit in the last place) of the narrower type on whose grid
// all values of the candidate's float32 tensor lie, while those of the golden do not; 0 if there is
// none. The first 4096 elements are looked at.
func Grid(golden, actual *tensor.Tensor) float64 {
	if golden.DType() != tensor.F32 || actual.DType() != tensor.F32 {
		return 0
	}
	a, n := lowBits(actual)
	g, _ := lowBits(golden)
	for _, t := range narrower {
		if n >= gridLeast && a&t.bits == 0 && g&t.bits != 0 {
			return t.unit
		}
	}
	return 0
}

// lowBits returns the bits that any finite value has, and how many of them are not zero.
func lowBits(t *tensor.Tensor) (bits uint32, n int) {
	buf := make([]float64, min(t.Len(), gridSample))
	for _, x := range buf[:t.Float64s(buf, 0)] {
		if b := math.Float32bits(float32(x)); b<<1 != 0 && !math.IsNaN(x) && !math.IsInf(x, 0) {
			bits |= b
			n++
		}
	}
	return bits, n
}
