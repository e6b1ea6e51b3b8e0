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
	attention := func(keys string) []match.Port {
		ports := parse(t, "0 layers.0.attn f32 1x5x8\n0 layers.0.attn f32 "+keys+"\n0 layers.0.attn f32 1x5x4x16")
		ports[0].Port, ports[1].Port, ports[2].Port = "output", "key_cache", "value_cache"
		return ports
	}
	for _, tt := range []struct {
		keys, problem, reason string
		pairs                 int
	}{
		{"1x5x1x16", "", "a latent one", 2},
		{"1x5", "shape [1 5] does not fit the golden's [1 5 4 24]", "nothing of a token", 3},
		{"1x6x4x24", "shape [1 6 4 24] does not fit the golden's [1 5 4 24]", "a token more", 3},
	} {
		r, err := match.Runs(attention("1x5x4x24"), attention(tt.keys), match.Options{})
		require.NoError(t, err)
		require.Len(t, r.Pairs, tt.pairs, tt.reason)
		problem := ""
		for _, p := range r.Pairs {
			problem += p.Problem
		}
		assert.Equal(t, tt.problem, problem, tt.reason)
		for _, u := range r.UnmatchedActual {
			assert.Contains(t, u.Reason, "as absorbed attention does", tt.reason)
		}
	}
}
