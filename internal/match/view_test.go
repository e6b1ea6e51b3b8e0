package match_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// count is a tensor of 0, 1, 2, …
func count(shape ...int) *tensor.Tensor {
	n, _ := tensor.NumElems(shape)
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i)
	}
	x, err := tensor.Of(values, shape...)
	if err != nil {
		panic(err)
	}
	return x
}

func TestView(t *testing.T) {
	tests := []struct {
		name   string
		view   match.View
		parts  []*tensor.Tensor
		shape  []int
		values []float64
		reason string
	}{
		{"nothing", nil, []*tensor.Tensor{count(2, 2)}, []int{2, 2}, []float64{0, 1, 2, 3}, "the tensor itself"},
		{"slice", match.View{{Kind: match.Slice, Axis: -1, From: 1, To: 3}}, []*tensor.Tensor{count(2, 3)},
			[]int{2, 2}, []float64{1, 2, 4, 5}, "columns"},
		{"transpose", match.View{{Kind: match.Transpose, Order: []int{1, 0}}}, []*tensor.Tensor{count(2, 3)},
			[]int{3, 2}, []float64{0, 3, 1, 4, 2, 5}, "axes exchanged"},
		{"reshape", match.View{{Kind: match.Reshape, Shape: []int{3, 2}}}, []*tensor.Tensor{count(2, 3)}, []int{3, 2},
			[]float64{0, 1, 2, 3, 4, 5}, "the same elements"},
		{"rows", match.View{{Kind: match.Rows, Keep: []bool{true, false, true}}}, []*tensor.Tensor{count(3, 1, 2)},
			[]int{2, 1, 2}, []float64{0, 1, 4, 5}, "indices of the first axis"},
		{"rows of ids", match.View{{Kind: match.Rows, Keep: []bool{true, false, true}}}, []*tensor.Tensor{count(3)},
			[]int{2}, []float64{0, 2}, "elements"},
		{"concat", match.View{{Kind: match.Concat, Axis: -1}, {Kind: match.Slice, Axis: 1, From: 1, To: 3}},
			[]*tensor.Tensor{count(2, 2), count(2, 1)}, []int{2, 2}, []float64{1, 0, 3, 1}, "side by side, then cut"},
		{"last row",
			match.View{{Kind: match.Slice, Axis: 1, From: 2, To: 3}, {Kind: match.Reshape, Shape: []int{2, 2}}},
			[]*tensor.Tensor{count(2, 3, 2)}, []int{2, 2}, []float64{4, 5, 10, 11}, "of each sequence"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.view.Apply(tt.parts...)
			require.NoError(t, err, tt.reason)
			values := make([]float64, got.Len())
			got.Float64s(values, 0)
			assert.Equal(t, tt.shape, got.Shape(), tt.reason)
			assert.Equal(t, tt.values, values, tt.reason)
			var shapes [][]int
			for _, p := range tt.parts {
				shapes = append(shapes, p.Shape())
			}
			shape, err := tt.view.Shape(shapes...)
			require.NoError(t, err)
			assert.Equal(t, tt.shape, shape, "Shape says the same")
		})
	}
}

func TestViewInverse(t *testing.T) {
	tests := []struct {
		name   string
		view   match.View
		shape  []int
		want   match.View
		ok     bool
		reason string
	}{
		{"as it is", nil, []int{2, 3}, nil, true, "nothing to undo"},
		{"reshape", match.View{{Kind: match.Reshape, Shape: []int{1, 7, 4}}}, []int{7, 4},
			match.View{{Kind: match.Reshape, Shape: []int{7, 4}}}, true, "the batch axis goes again"},
		{"transpose", match.View{{Kind: match.Transpose, Order: []int{1, 2, 0}}}, []int{2, 3, 4},
			match.View{{Kind: match.Transpose, Order: []int{2, 0, 1}}}, true, "the axes go back"},
		{"both", match.View{{Kind: match.Reshape, Shape: []int{2, 3}}, {Kind: match.Transpose, Order: []int{1, 0}}},
			[]int{6},
			match.View{{Kind: match.Transpose, Order: []int{1, 0}}, {Kind: match.Reshape, Shape: []int{6}}}, true,
			"the last goes first"},
		{"slice", match.View{{Kind: match.Slice, To: 1}}, []int{2}, nil, false, "what is left out is not known"},
		{"rows", match.View{{Kind: match.Rows, Keep: []bool{true, false}}}, []int{2, 4}, nil, false,
			"nor are padding rows"},
		{"concat", match.View{{Kind: match.Concat}}, []int{2}, nil, false, "which part is whose?"},
		{"misfit", match.View{{Kind: match.Reshape, Shape: []int{5}}, {Kind: match.Reshape, Shape: []int{5, 1}}},
			[]int{6}, nil, false, "a view of another shape"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.view.Inverse(tt.shape)
			require.Equal(t, tt.ok, ok, tt.reason)
			assert.Equal(t, tt.want, got, tt.reason)
			if !ok {
				return
			}
			x := count(tt.shape...)
			y, err := tt.view.Apply(x)
			require.NoError(t, err)
			z, err := got.Apply(y)
			require.NoError(t, err)
			require.Equal(t, tt.shape, z.Shape())
			for i := range x.Len() {
				assert.Equal(t, float64(i), z.At(i))
			}
		})
	}
}

func TestViewErrors(t *testing.T) {
	tests := []struct {
		name   string
		view   match.View
		parts  [][]int
		want   string
		reason string
	}{
		{"no parts", nil, nil, "no tensors", "nothing to look at"},
		{"two parts", match.View{{Kind: match.Slice}}, [][]int{{2}, {2}}, "does not begin with concat",
			"which of them?"},
		{"late concat", match.View{{Kind: match.Slice, To: 1}, {Kind: match.Concat}}, [][]int{{2}},
			"concat must come first", "the parts are joined once"},
		{"slice", match.View{{Kind: match.Slice, Axis: 0, From: 1, To: 3}}, [][]int{{2}}, "view [1:3] of axis 0",
			"beyond the end"},
		{"concat axis", match.View{{Kind: match.Concat, Axis: -2}}, [][]int{{2}, {2}}, "axis -1", "no such axis"},
		{"concat of others", match.View{{Kind: match.Concat}}, [][]int{{2, 3}, {2, 4}}, "[2 4] does not fit [2 3] along axis 0", "another width"},
		{"a part with less axes", match.View{{Kind: match.Concat}}, [][]int{{2, 3}, {2}}, "[2] does not fit [2 3]", "no width"},
		{"an axis left out", match.View{{Kind: match.Transpose, Order: []int{0}}}, [][]int{{2, 2}}, "not an order of 2 axes", "where is the other?"},
		{"transpose", match.View{{Kind: match.Transpose, Order: []int{0, 0}}}, [][]int{{2, 2}},
			"not an order of 2 axes", "an axis twice"},
		{"reshape", match.View{{Kind: match.Reshape, Shape: []int{5}}}, [][]int{{2, 2}}, "view reshape [5]",
			"another number of elements"},
		{"rows", match.View{{Kind: match.Rows, Keep: []bool{true}}}, [][]int{{2, 2}}, "1 flags", "a flag per index"},
		{"unknown", match.View{{Kind: "flip"}}, [][]int{{2}}, "unknown operation \"flip\"", "no such operation"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.view.Shape(tt.parts...)
			assert.ErrorContains(t, err, tt.want, tt.reason)
			var parts []*tensor.Tensor
			for _, s := range tt.parts {
				parts = append(parts, count(s...))
			}
			_, err = tt.view.Apply(parts...)
			assert.Error(t, err, "Apply refuses it too")
		})
	}
}

func TestLeft(t *testing.T) {
	full := count(2, 2, 2)
	assert.Equal(t, []bool{false, true, false, false}, match.RowsLeftOut([]bool{true, false, true, true}, full))
	assert.Equal(t, []bool{true, true, false, false}, match.RowsLeftOut([]bool{false, true}, full), "flags of the first axis hold for all rows in it")
}

func TestReshapes(t *testing.T) {
	assert.True(t, match.View(nil).Reshapes(), "no operation at all")
	assert.True(t, match.Reshaped([]int{4, 2}).Reshapes())
	assert.False(t, append(match.Reshaped([]int{4, 2}), match.Op{Kind: match.Rows, Keep: []bool{true}}).Reshapes())
}
