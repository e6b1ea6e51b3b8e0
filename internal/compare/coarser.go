package compare

import "github.com/goparity/goparity/tensor"

// Coarser returns the type whose tolerances apply to a pair: the integer type if the other is a
// float, because integers are compared exactly, or the less precise of two floats.
func Coarser(golden, actual tensor.DType) tensor.DType {
	switch {
	case golden.IsFloat() && !actual.IsFloat():
		return actual
	case !golden.IsFloat() && actual.IsFloat(), golden.Epsilon() > actual.Epsilon():
		return golden
	case golden.Epsilon() == actual.Epsilon() && golden.Size() > actual.Size():
		return golden
	default:
		return actual
	}
}

// Has16Bits reports whether a type is a float of 16 bits: the errors of its roundings are as large as
// small faults.
func Has16Bits(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }
