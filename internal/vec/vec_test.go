package vec_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/vec"
)

func TestRelative(t *testing.T) {
	for _, tt := range []struct {
		reason string
		a, b   []float64
		want   float64
	}{
		{"a tenth of the norm", []float64{3.3, 4.4}, []float64{3, 4}, 0.1},
		{"zeros are equal", []float64{0, 0}, []float64{0, 0}, 0},
		{"of zeros anything is far", []float64{1}, []float64{0}, math.Inf(1)},
		{"NaN", []float64{math.NaN()}, []float64{1}, math.Inf(1)},
		{"other lengths", []float64{1, 2}, []float64{1}, math.Inf(1)},
		{"nothing", nil, nil, math.Inf(1)},
	} {
		got := vec.Relative(tt.a, tt.b)
		if math.IsInf(tt.want, 1) {
			assert.True(t, math.IsInf(got, 1), tt.reason)
			continue
		}
		assert.InDelta(t, tt.want, got, 1e-12, tt.reason)
	}
}

func TestNarrow(t *testing.T) {
	for _, tt := range []struct {
		reason string
		of     string
		x      float64
		want   float64
	}{
		{"ties to even", "bfloat16", 1 + 1.0/256, 1},
		{"the next one up", "bfloat16", 1 + 3.0/256, 1 + 4.0/256},
		{"a subnormal number", "float16", 1.5 * math.Ldexp(1, -24), 2 * math.Ldexp(1, -24)},
		{"float8 saturates", "float8_e4m3", 1000, 448},
	} {
		for _, n := range vec.Narrows {
			if n.Name == tt.of {
				assert.Equal(t, tt.want, n.Round(tt.x), tt.reason)
			}
		}
	}
}

func TestPermutations(t *testing.T) {
	at := vec.Transposition([]int{2, 3}, 0, 1)
	var order []int
	for i := range 6 {
		order = append(order, at(i))
	}
	assert.Equal(t, []int{0, 3, 1, 4, 2, 5}, order)
	assert.Equal(t, 3, vec.Runs([]int{2, 3, 0, 1, 4}))
	assert.Equal(t, 2, vec.BlockSize([]int{2, 3, 0, 1}))
	assert.Equal(t, []float64{2, 1, 4, 3}, vec.Select([]float64{1, 2, 3, 4}, 2, []int{1, 0}))
}

func TestLeastSquares(t *testing.T) {
	f := vec.LeastSquares([][]float64{{1, 0, 1}, {0, 1, 1}}, []float64{2, 3, 5})
	assert.InDeltaSlice(t, []float64{2, 3}, f, 1e-12)
	assert.Nil(t, vec.LeastSquares([][]float64{{1, 1}, {1, 1}}, []float64{1, 1}), "columns that are one tell nothing")
}
