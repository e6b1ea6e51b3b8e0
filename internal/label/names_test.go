package label_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/label"
)

func TestFold(t *testing.T) {
	tests := []struct{ name, segment, want, reason string }{
		{"case", "LayerNorm", "layernorm", "engines differ in case"},
		{"underscores", "layer_norm", "layernorm", "and in underscores"},
		{"nothing left", "__", "__", "a segment is never empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, label.Fold(tt.segment), tt.reason)
		})
	}
}

func TestNames(t *testing.T) {
	assert.True(t, label.QueryNames.Has("model.layers.3.attn.q_proj(2)"), "the last segment decides, calls do not")
	assert.False(t, label.QueryNames.Has("model.q_proj.lora"), "not a segment within")
	assert.Contains(t, label.StackedQKV.Folded(), "qkvproj")
}

// The parts of a fused projection are found by the index of their family.
func TestFamilies(t *testing.T) {
	key := strings.NewReplacer("query", "key", "q", "k")
	value := strings.NewReplacer("query", "value", "q", "v")
	up := strings.NewReplacer("gate", "up", "w1", "w3", "wi_0", "wi_1")
	for i := range label.KeyNames {
		assert.Equal(t, key.Replace(label.QueryNames[i]), label.KeyNames[i])
		assert.Equal(t, value.Replace(label.QueryNames[i]), label.ValueNames[i])
	}
	for i := range label.UpNames {
		assert.Equal(t, up.Replace(label.GateNames[i]), label.UpNames[i])
	}
}
