package dump_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// Which tokens are real is told by what their queries may see, whichever way round a mask says it.
func TestRealTokens(t *testing.T) {
	mask := func(dtype tensor.DType, shape []int, x ...byte) dump.Entry {
		w, err := tensor.New(dtype, shape, x)
		require.NoError(t, err)
		return dump.Entry{Step: "0", Layer: "model.h.0", Port: "input_attention_mask", Tensor: w}
	}
	square := []int{1, 1, 3, 3}
	for _, tt := range []struct {
		entry  dump.Entry
		want   [][]bool
		reason string
	}{
		{mask(tensor.Bool, square, 1, 0, 0, 1, 1, 0, 1, 1, 1), nil, "causal, true for what may be seen: no padding"},
		{mask(tensor.Bool, square, 0, 1, 1, 0, 0, 1, 0, 0, 0), nil, "causal, true for what may not: no padding, either"},
		{mask(tensor.Bool, square, 0, 0, 0, 0, 1, 0, 0, 1, 1), [][]bool{{false, true, true}}, "padded on the left"},
		{mask(tensor.Bool, square, 1, 1, 1, 1, 0, 1, 1, 0, 0), [][]bool{{false, true, true}}, "the same, true for what may not be seen"},
		{mask(tensor.Bool, square, 0, 1, 1, 0, 0, 1, 0, 0, 1), [][]bool{{true, true, false}}, "padded on the right"},
		{mask(tensor.Bool, []int{1, 1, 2, 3}, 1, 1, 0, 1, 1, 1), nil, "two queries behind one key of a cache"},
		{mask(tensor.Bool, []int{1, 1, 2, 3}, 0, 0, 1, 0, 0, 0), nil, "the same, true for what may not be seen"},
		{mask(tensor.Bool, []int{1, 1, 2, 3}, 1, 0, 1, 1, 1, 0), [][]bool{{false, true, true}}, "each sees itself alone"},
		{mask(tensor.Bool, []int{1, 1, 1, 3}, 0, 1, 1), [][]bool{{false, true, true}}, "one query: true is for what may be seen"},
		{mask(tensor.U8, []int{1, 3}, 0, 1, 1), [][]bool{{false, true, true}}, "of tokens"},
	} {
		run := &dump.Run{Entries: []dump.Entry{tt.entry}}
		assert.Equal(t, tt.want, run.RealTokens(), tt.reason)
	}
}
