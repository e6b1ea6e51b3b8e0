package layout_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// FuzzView: Apply and Shape agree for any view of two tensors, and neither panics.
func FuzzView(f *testing.F) {
	f.Add([]byte{0, 255, 0, 0, 1, 1, 0, 2}, uint8(2), uint8(3))
	f.Add([]byte{3, 0, 6, 1, 4, 0, 1, 1}, uint8(3), uint8(2))
	f.Add([]byte{2, 1, 0, 0, 1, 0, 1, 2}, uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, code []byte, rows, columns uint8) {
		var v layout.View
		kinds := []layout.OpKind{layout.Concat, layout.Slice, layout.Transpose, layout.Reshape, layout.Rows, "other"}
		for ; len(code) >= 4 && len(v) < 6; code = code[4:] {
			a, b, c := int(int8(code[1])), int(int8(code[2])), int(int8(code[3]))
			keep := make([]bool, max(0, b))
			for i := range keep {
				keep[i] = i%2 == 0
			}
			v = append(v, layout.Op{Kind: kinds[int(code[0])%len(kinds)], Axis: a, From: b, To: c, Shape: []int{b, c}, Order: []int{a, b},
				Keep: keep})
		}
		parts := [][]int{{int(rows), int(columns)}, {int(rows), 3}}
		for n := range len(parts) + 1 {
			var tensors []*tensor.Tensor
			var shapes [][]int
			for _, p := range parts[:n] {
				tensors = append(tensors, zero(t, p))
				shapes = append(shapes, p)
			}
			shape, err := v.Shape(shapes...)
			got, err2 := v.Apply(tensors...)
			if (err == nil) != (err2 == nil) {
				t.Fatalf("view %s: Shape says %v, Apply %v", v, err, err2)
			}
			if err == nil {
				assert.True(t, slices.Equal(shape, got.Shape()), "%v, %v", shape, got.Shape())
			}
		}
	})
}

// zero is a tensor of zeros, one element repeated.
func zero(t testing.TB, shape []int) *tensor.Tensor {
	one, err := tensor.Of([]float32{0})
	require.NoError(t, err)
	z, err := one.Broadcast(shape...)
	require.NoError(t, err)
	return z
}
