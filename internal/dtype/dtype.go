// Package dtype knows which of two element types decides about a pair of tensors.
package dtype

import "github.com/goparity/goparity/tensor"

// Coarser returns the type whose tolerances hold for a pair: the float one against an integer, of
// two floats the less precise.
func Coarser(golden, actual tensor.DType) tensor.DType {
	switch {
	case golden.Epsilon() > actual.Epsilon(), golden.IsFloat() && !actual.IsFloat():
		return golden
	case golden.IsFloat() == actual.IsFloat() && golden.Epsilon() == actual.Epsilon() && golden.Size() > actual.Size():
		return golden
	default:
		return actual
	}
}
