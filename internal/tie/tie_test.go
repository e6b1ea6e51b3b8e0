package tie_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/tie"
	_ "github.com/goparity/goparity/internal/updateflag"
	"github.com/goparity/goparity/tensor"
)

func of[T float64 | int64](t *testing.T, rows ...[]T) *tensor.Tensor {
	t.Helper()
	var v []T
	for _, r := range rows {
		v = append(v, r...)
	}
	x, err := tensor.Of(v, len(rows), len(rows[0]))
	require.NoError(t, err)
	return x
}

func TestDecides(t *testing.T) {
	scores := of(t, []float64{1, 5, 3, 2}, []float64{4, 0, 4, 1})
	for _, tt := range []struct {
		index  *tensor.Tensor
		want   bool
		reason string
	}{
		{of(t, []int64{1, 2}, []int64{0, 2}), true, "the two largest"},
		{of(t, []int64{2, 1}, []int64{2, 0}), true, "in any order"},
		{of(t, []int64{1}, []int64{2}), true, "either of two equal ones"},
		{of(t, []int64{1, 3}, []int64{0, 2}), false, "the third in place of the second"},
		{of(t, []int64{1, 1}, []int64{0, 2}), false, "one twice"},
		{of(t, []int64{1, 4}, []int64{0, 2}), false, "a place that is none"},
	} {
		assert.Equal(t, tt.want, tie.Decides(scores, tt.index), tt.reason)
	}
}

func TestOf(t *testing.T) {
	golden := of(t, []float64{1, 5, 4.99, 2}, []float64{9, 0, 4, 1}, []float64{3, 2, 2.999, 0}, []float64{1, 2, 3, 8})
	index := of(t, []int64{1}, []int64{0}, []int64{0}, []int64{3})
	near := of(t, []float64{1, 4.98, 5, 2}, []float64{9, 0, 4, 1}, []float64{3, 2, 3.002, 0}, []float64{1, 2, 3, 8})
	wrong := of(t, []float64{1, 1, 5, 2}, []float64{9, 0, 4, 1}, []float64{3, 2, 3.002, 0}, []float64{1, 2, 3, 8})
	flipped := of(t, []int64{2}, []int64{0}, []int64{2}, []int64{3})
	far := of(t, []int64{2}, []int64{2}, []int64{2}, []int64{3})
	for _, tt := range []struct {
		reason         string
		choice         tie.Choice
		scores, chosen *tensor.Tensor
		skip           map[int]bool
		want           []int
	}{
		{"both recorded", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, near, flipped, nil, []int{0, 2}},
		{"only the scores", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, near, nil, nil, []int{0, 2}},
		{"only the choice", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, nil, flipped, nil, []int{0, 2}},
		{"neither: these may be", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, nil, nil, nil, []int{0, 2}},
		{"a flip far apart is none", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, near, far, nil, []int{0, 2}},
		{"nor is one by wrong scores", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, wrong, flipped, nil, []int{2}},
		{"a row on another way already", tie.Choice{Scores: golden, Index: index, DType: tensor.BF16}, near, flipped, map[int]bool{0: true}, []int{2}},
		{"float32 errs less", tie.Choice{Scores: golden, Index: index, DType: tensor.F32}, near, flipped, nil, nil},
		{"no index: neighbours that the other cannot tell apart", tie.Choice{Scores: golden, DType: tensor.BF16}, near, nil, nil, []int{0, 2}},
		{"no scores: two of four are too many", tie.Choice{Index: index, DType: tensor.BF16, Unknown: true}, nil, flipped, nil, nil},
		{"no scores: one may be", tie.Choice{Index: index, DType: tensor.BF16, Unknown: true}, nil,
			of(t, []int64{2}, []int64{0}, []int64{0}, []int64{3}), nil, []int{0}},
	} {
		got := tt.choice.Of(tt.scores, tt.chosen, tt.skip)
		assert.Equal(t, tt.want, got.Rows, tt.reason)
		assert.Empty(t, got.Swapped, tt.reason)
	}

	two := tie.Choice{Scores: golden, Index: of(t, []int64{1, 2}, []int64{0, 2}, []int64{0, 2}, []int64{3, 2}), DType: tensor.BF16}
	got := two.Of(near, of(t, []int64{2, 1}, []int64{2, 0}, []int64{2, 0}, []int64{3, 2}), nil)
	assert.Empty(t, got.Rows)
	assert.Equal(t, []int{0, 2}, got.Swapped, "the same two in another order; that of row 1 is no tie")
}

func TestPositions(t *testing.T) {
	type at struct{ batch, token int }
	for _, tt := range []struct {
		shape           []int
		tokens, per     int
		row             int
		want            at
		reason          string
		rowsAreNoTokens bool
	}{
		{[]int{2, 5, 8}, 10, 5, 7, at{1, 2}, "[batch, tokens, hidden]", false},
		{[]int{10, 8}, 10, 5, 7, at{1, 2}, "[tokens, hidden]", false},
		{[]int{2, 3, 5, 4}, 10, 5, 17, at{1, 2}, "[batch, heads, tokens, d]", false},
		{[]int{2, 5, 3, 4}, 10, 5, 17, at{1, 0}, "[batch, tokens, heads, d]", false},
		{[]int{2, 100}, 10, 5, 1, at{1, 4}, "the last token of each sequence", false},
		{[]int{7, 8}, 10, 5, 0, at{}, "rows that are grouped by expert", true},
		{[]int{8}, 10, 5, 0, at{}, "no rows", true},
	} {
		f := tie.Positions(tt.shape, tt.tokens, tt.per)
		if tt.rowsAreNoTokens {
			assert.Nil(t, f, tt.reason)
			continue
		}
		batch, token := f(tt.row)
		assert.Equal(t, tt.want, at{batch, token}, tt.reason)
	}
}
