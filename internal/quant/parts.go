package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// floats decodes n elements of a tensor from the first.
func floats(t *tensor.Tensor, first, n int) []float32 {
	out := make([]float32, n)
	t.Float32s(out, first)
	return out
}

// bytesOf returns the bytes of codes. Views have checked that there are.
func bytesOf(t *tensor.Tensor) []byte {
	b, _ := t.Bytes()
	return b
}

// A part is a companion of a quantised weight.
type part struct {
	name  string
	t     *tensor.Tensor
	types []tensor.DType
	shape []int // −1 for any size; nil for any shape
}

var (
	scaleTypes = []tensor.DType{tensor.F32, tensor.F16, tensor.BF16}
	words      = []tensor.DType{tensor.U32, tensor.I32}
)

// check requires types and shapes.
func check(parts ...part) error {
	for _, p := range parts {
		if p.t == nil {
			return fmt.Errorf("%s is missing", p.name)
		}
		if !slices.Contains(p.types, p.t.DType()) {
			return fmt.Errorf("%s is %s, want one of %v", p.name, p.t.DType(), p.types)
		}
		fits := p.shape == nil || len(p.shape) == len(p.t.Shape())
		for i := 0; fits && i < len(p.shape); i++ {
			fits = p.shape[i] < 0 || p.shape[i] == p.t.Shape()[i]
		}
		if !fits {
			return fmt.Errorf("%s has shape %s, want %v, −1 for any size", p.name, tensor.FormatShape(p.t.Shape()), p.shape)
		}
		if _, ok := p.t.Bytes(); !ok {
			return fmt.Errorf("%s does not lie in order", p.name)
		}
	}
	return nil
}

// last returns a shape with another last axis.
func last(shape []int, n int) []int {
	out := slices.Clone(shape)
	if len(out) > 0 {
		out[len(out)-1] = n
	}
	return out
}
