package match_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
)

// Tensors saved by hand are layers with one port; where the other side has a module of that name,
// its output is meant.
func TestTaps(t *testing.T) {
	golden := parse(t, "0 layers.0.after_rope f32 1x5x4\n0 model.norm-output f32 1x5x4\n0 logits f32 1x5x9")
	actual := parse(t, "0 model.layers.0.after_rope f32 5x4\n0 model.norm f32 5x4\n0 logits f32 1x9")
	r, err := match.Runs(golden, actual, match.Options{})
	require.NoError(t, err)
	check(t, golden, actual, r)
	checkViews(t, golden, actual, r)
	assert.Equal(t, map[string][]string{"layers.0.after_rope": {"model.layers.0.after_rope"}, "model.norm": {"model.norm"},
		"logits": {"logits"}}, r.Layers)
	assert.Contains(t, r.Pairs[2].Problem, "shape [1 9] does not fit", "nothing says that this model generates")
}
