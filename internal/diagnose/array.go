package diagnose

import "github.com/goparity/goparity/tensor"

// Array is a tensor in float64, row-major: what hypotheses calculate with.
type Array struct {
	Shape []int
	Data  []float64
}

// NewArray returns an array of zeros.
func NewArray(shape ...int) *Array {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return &Array{Shape: shape, Data: make([]float64, n)}
}

// ArrayOf decodes a tensor.
func ArrayOf(t *tensor.Tensor) *Array {
	a := &Array{Shape: append([]int(nil), t.Shape()...), Data: make([]float64, t.Len())}
	t.Float64s(a.Data, 0)
	return a
}

// Rows is the number of rows. A scalar is one row of one element.
func (a *Array) Rows() int { return len(a.Data) / max(a.Width(), 1) }

// Width is the length of the last axis.
func (a *Array) Width() int {
	if len(a.Shape) == 0 {
		return 1
	}
	return a.Shape[len(a.Shape)-1]
}

// Row is row i, in place.
func (a *Array) Row(i int) []float64 {
	w := a.Width()
	return a.Data[i*w : (i+1)*w]
}

// With returns an array of the same shape with other elements, which it keeps.
func (a *Array) With(data []float64) *Array { return &Array{Shape: a.Shape, Data: data} }

// Map returns a new array of f of each element.
func (a *Array) Map(f func(float64) float64) *Array {
	b := a.With(make([]float64, len(a.Data)))
	for i, x := range a.Data {
		b.Data[i] = f(x)
	}
	return b
}
