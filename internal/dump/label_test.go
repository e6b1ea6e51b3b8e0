package dump_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
)

func TestOrdered(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		want   bool
		reason string
	}{
		{"scores", "probs", false, "names that people thought of"},
		{"m.layers.2.mlp", "m.layers.10.attn", true, "blocks by their numbers"},
		{"m.layers.2.mlp.gate", "m.layers.2.mlp.up", false, "inside of one block"},
		{"m.layers.2", "m.layers.2.mlp", true, "a container runs after what is inside of it"},
		{"m.layers.2.mlp", "m.norm", true, "the final norm comes after the blocks"},
		{"m.layers.2.mlp", "lm_head", true, "the head too"},
		{"heads", "scores", false, "no block, so it may be anything"},
		{"m", "m", true, "one and the same"},
	} {
		assert.Equal(t, c.want, dump.Ordered(c.a, c.b), c.reason)
		assert.Equal(t, c.want, dump.Ordered(c.b, c.a), c.reason)
	}
}
