package layout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

func TestLeft(t *testing.T) {
	full, err := tensor.Of([]float32{1, 2, 0, 0, 3, 4, 5, 6}, 2, 2, 2)
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true, false, false}, layout.Left([]bool{true, false, true, true}, full))
	assert.Equal(t, []bool{true, true, false, false}, layout.Left([]bool{false, true}, full), "flags of the first axis hold for all rows in it")
}

func TestReshapes(t *testing.T) {
	assert.True(t, layout.View(nil).Reshapes(), "no operation at all")
	assert.True(t, layout.Reshaped([]int{4, 2}).Reshapes())
	assert.False(t, append(layout.Reshaped([]int{4, 2}), layout.Op{Kind: layout.Rows, Keep: []bool{true}}).Reshapes())
}
