package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/checkpoint"
)

// What a config exempts is what its writers exempt: everything else has to have its scales.
func TestIgnoring(t *testing.T) {
	for _, tt := range []struct {
		entry, module string
		want          bool
		reason        string
	}{
		{`re:.*mlp.gate$`, "model.layers.0.mlp.gate", true, "a router"},
		{`re:.*mlp.gate$`, "model.layers.0.mlp.gate_proj", false, "no matrix whose name begins so"},
		{`re:.*\.layers\.\d+\.self_attn.*`, "model.layers.11.self_attn.q_proj", true, "a class of characters"},
		{`re:.*\.layers\.\d+\.self_attn.*`, "model.layers.11.mlp.up_proj", false, "another module"},
		{`re:visual`, "visual.blocks.0.attn", true, "from the beginning"},
		{`re:visual`, "model.visual.blocks.0.attn", false, "and from there only"},
		{`re:(?!model).*`, "model.layers.0", true, "what Go cannot read asks nothing"},
		{"lm_head", "lm_head", true, "a name"},
		{"lm_head", "model.lm_head", true, "with another prefix"},
		{"model.layers.1", "model.layers.1.mlp.up_proj", true, "what is inside"},
		{"model.layers.1", "model.layers.10.mlp.up_proj", false, "a longer number"},
		{"gate", "model.layers.0.mlp.gate_proj", false, "a part of a segment"},
		{"gate", "model.layers.0.mlp.gate", true, "a segment"},
		{"*lm_head*", "model.lm_head", true, "a pattern of ModelOpt"},
		{"model.layers.0*", "model.layers.0.mlp.up_proj", true, "a pattern with a beginning"},
		{"*router*", "model.layers.0.mlp.up_proj", false, "another one"},
		{"", "lm_head", false, "nothing"},
	} {
		assert.Equal(t, tt.want, checkpoint.Ignoring(tt.entry)(tt.module), "%s: %s beside %s", tt.reason, tt.entry, tt.module)
	}
}
