package layout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// What is spread has its rows where they are kept, and zeros elsewhere: selecting them again
// returns what went in.
func TestSpread(t *testing.T) {
	rows, err := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	require.NoError(t, err)
	keep := []bool{true, false, true, true}
	full, err := layout.Spread(rows, keep, []int{2, 2, 2})
	require.NoError(t, err)
	var got []float64
	for i := range full.Len() {
		got = append(got, full.At(i))
	}
	assert.Equal(t, []float64{1, 2, 0, 0, 3, 4, 5, 6}, got)
	assert.Equal(t, []bool{false, true, false, false}, layout.Left(keep, full))
	assert.Equal(t, []bool{true, true, false, false}, layout.Left([]bool{false, true}, full), "flags of the first axis hold for all rows in it")
	for _, c := range []struct {
		keep   []bool
		shape  []int
		reason string
	}{
		{nil, []int{4, 2}, "nothing says what is kept"},
		{[]bool{true, true, true}, []int{4, 2}, "the flags do not divide the shape"},
		{[]bool{true, true, true, true}, []int{4, 2}, "more rows are kept than there are"},
	} {
		_, err := layout.Spread(rows, c.keep, c.shape)
		assert.Error(t, err, c.reason)
	}
}

func TestReshapes(t *testing.T) {
	assert.True(t, layout.View(nil).Reshapes(), "no operation at all")
	assert.True(t, layout.Reshaped([]int{4, 2}).Reshapes())
	assert.False(t, append(layout.Reshaped([]int{4, 2}), layout.Op{Kind: layout.Rows, Keep: []bool{true}}).Reshapes())
}
