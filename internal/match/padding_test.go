package match_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/match"
)

// Two sequences of six tokens, of which the second has two of padding.
func TestPadding(t *testing.T) {
	flat := slices.Concat(pad...)
	last := make([]bool, 12)
	last[5], last[9] = true, true
	tests := []struct {
		name           string
		golden, actual string
		goldenView     layout.View
		rowMask        []bool
		shape          []int
		reason         string
	}{
		{"hidden", "m 2x6x4 > 2x6x4", "m 2x6x4 > 2x6x4", nil, flat, []int{2, 6, 4}, "a row per token"},
		{"ragged without padding", "m 2x6x4 > 2x6x4", "m 10x4 > 10x4",
			layout.View{{Kind: layout.Reshape, Shape: []int{12, 4}}, {Kind: layout.Rows, Keep: flat}}, nil,
			[]int{10, 4}, "real tokens only"},
		{"ids", "m 2x6x4 > i64:2x6", "m 2x6x4 > i64:2x6", layout.View{{Kind: layout.Reshape, Shape: []int{2, 6, 1}}},
			flat, []int{2, 6, 1}, "a row per id"},
		{"last row", "lm_head 2x6x4 > 2x6x4", "lm_head 2x4 > 2x4",
			layout.View{{Kind: layout.Reshape, Shape: []int{12, 4}}, {Kind: layout.Rows, Keep: last}}, nil, []int{2, 4},
			"the last real token of each"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			golden, actual := invent(t, 1, tt.golden), invent(t, 1, tt.actual)
			r, err := match.Runs(golden, actual, match.Options{PadMask: pad})
			require.NoError(t, err)
			checkViews(t, golden, actual, r)
			p := r.Pairs[len(r.Pairs)-1] // the output
			require.Empty(t, p.Problem)
			assert.Equal(t, tt.goldenView, p.GoldenView, tt.reason)
			assert.Equal(t, tt.rowMask, p.RowMask, tt.reason)
			assert.Equal(t, tt.shape, p.Shape, tt.reason)
		})
	}
}
