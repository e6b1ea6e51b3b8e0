package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// rows are the rows of a weight whose elements are computed.
type rows struct {
	width int // elements of a row
	// row writes elements from, from+1, … of row r, all of which exist, with the code force in
	// place of their own; asStored for theirs.
	row       func(dst []float32, r, from, force int)
	low, high int       // the codes of the ends
	values    []float32 // see tensor.Grid
	epsilon   float64
	groups    []int64 // see tensor.Grid
}

const asStored = -1

// view returns the tensor of rows.
func (v rows) view(name string, dtype tensor.DType, of *tensor.Tensor, shape ...int) (*tensor.Tensor, error) {
	each := func(dst []float32, from, force int) {
		for len(dst) > 0 {
			r, at := from/v.width, from%v.width
			n := min(len(dst), v.width-at)
			v.row(dst[:n], r, at, force)
			dst, from = dst[n:], from+n
		}
	}
	return tensor.FromSpec(tensor.Spec{DType: dtype, Shape: shape, Place: of.Place(), Packing: &tensor.Packing{Name: name,
		Unpack: func(dst []float32, _ []byte, from int) { each(dst, from, asStored) },
		Grid: &tensor.Grid{Values: v.values, Epsilon: v.epsilon, Clip: 1.1, Groups: v.groups,
			Ends: func(low, high []float32, _ []byte, from int) {
				each(low, from, v.low)
				each(high, from, v.high)
			}}}})
}

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
			return fmt.Errorf("%s is %s, want %s", p.name, p.t.DType(), oneOf(p.types))
		}
		fits := p.shape == nil || len(p.shape) == len(p.t.Shape())
		for i := 0; fits && i < len(p.shape); i++ {
			fits = p.shape[i] < 0 || p.shape[i] == p.t.Shape()[i]
		}
		if !fits {
			return fmt.Errorf("%s has shape %s, want %s", p.name, tensor.FormatShape(p.t.Shape()), wanted(p.shape))
		}
		if _, ok := p.t.Bytes(); !ok {
			return fmt.Errorf("%s does not lie in order", p.name)
		}
	}
	return nil
}

func oneOf(types []tensor.DType) string {
	text := ""
	for i, d := range types {
		if i > 0 {
			text += " or "
		}
		text += d.String()
	}
	return text
}

func wanted(shape []int) string {
	sizes := slices.Clone(shape)
	for i, d := range sizes {
		sizes[i] = max(d, 0)
	}
	text := tensor.FormatShape(sizes)
	if slices.Contains(shape, -1) {
		text += fmt.Sprintf(" (%d axes, 0 is any size)", len(shape))
	}
	return text
}

// last returns a shape with another last axis.
func last(shape []int, n int) []int {
	out := slices.Clone(shape)
	if len(out) > 0 {
		out[len(out)-1] = n
	}
	return out
}

// code returns the bits of a little-endian stream that begin at a bit; there are at most 8.
func code(b []byte, bit, bits int) uint32 {
	at := bit >> 3
	v := uint32(b[at])
	if bit&7+bits > 8 {
		v |= uint32(b[at+1]) << 8
	}
	return v >> (bit & 7) & (1<<bits - 1)
}
