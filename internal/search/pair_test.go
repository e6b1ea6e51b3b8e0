package search_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/search"
)

// Two edits in one piece are named together, where one of them alone leaves little.
func TestFindsPairs(t *testing.T) {
	p := block()
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	edits := listed(base, weights, nil)
	named := func(text string) *edit.Edit {
		i := slices.IndexFunc(edits, func(e edit.Edit) bool { return e.Text == text })
		require.GreaterOrEqual(t, i, 0, text)
		return &edits[i]
	}
	for _, tt := range []struct{ a, b, reason string }{
		{"0.up.weight → 1.up.weight", "silu → gelu", "a weight, and the function beside it"},
		{"0.up.weight → 1.up.weight", "other of add: 1e-06 → 0.01", "a weight, and a number before it"},
	} {
		both := edit.Both(p, named(tt.a), named(tt.b))
		require.NotNil(t, both, tt.reason)
		r, err := search.Find(t.Context(), site(t, p, both.Patch))
		require.NoError(t, err)
		if assert.NotEmpty(t, r.Fits, tt.reason) && assert.Len(t, r.Fits[0].Parts, 2, "%s: %s", tt.reason, r.Fits[0].Text) {
			assert.True(t, r.Proven, tt.reason)
			assert.ElementsMatch(t, []string{tt.a, tt.b}, []string{r.Fits[0].Parts[0].Text, r.Fits[0].Parts[1].Text}, tt.reason)
			assert.NotZero(t, r.Pairs, tt.reason)
		}
	}
	assert.Nil(t, edit.Both(p, named("silu → gelu"), named("silu → relu")), "one operator is changed once")
}
