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

// A cache may keep another form of the tokens; one of more or fewer tokens is a fault.
func TestCachesOfAnotherForm(t *testing.T) {
	golden := parse(t, "0 layers.0.attn-output f32 1x5x8\n0 layers.0.attn-key_cache f32 1x5x4x24\n0 layers.0.attn-value_cache f32 1x5x4x16")
	for _, tt := range []struct {
		key, reason string
		problems    int
	}{
		{"1x5x1x16", "a latent one", 0},
		{"1x6x4x24", "a token more", 1},
	} {
		r, err := match.Runs(golden, parse(t, "0 layers.0.attn-output f32 1x5x8\n0 layers.0.attn-key_cache f32 "+tt.key+
			"\n0 layers.0.attn-value_cache f32 1x5x4x16"), match.Options{})
		require.NoError(t, err)
		problems := 0
		for _, p := range r.Pairs {
			if p.Problem != "" {
				problems++
			}
		}
		assert.Equal(t, tt.problems, problems, tt.reason)
	}
}
