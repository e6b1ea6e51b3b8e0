package label_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/label"
)

func TestNames(t *testing.T) {
	assert.True(t, label.QueryNames.Has("model.layers.3.attn.q_proj(2)"), "the last segment decides, calls do not")
	assert.False(t, label.QueryNames.Has("model.q_proj.lora"), "not a segment within")
	assert.Contains(t, label.StackedQKV.Folded(), "qkvproj")
	for segment, folded := range map[string]string{"LayerNorm": "layernorm", "layer_norm": "layernorm", "__": "__"} {
		assert.Equal(t, folded, label.Fold(segment), "engines differ in case and underscores; a segment is never empty")
	}
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

func TestNearest(t *testing.T) {
	keys := []string{"model", "cases", "tolerances", "capture", "names", "ignore"}
	layers := []string{"model.encoder.layer.0.attention", "model.encoder.layer.1.attention",
		"model.encoder.layer.1.attention.self", "model.embeddings.LayerNorm"}
	for _, tt := range []struct {
		name   string
		in     []string
		want   string
		reason string
	}{
		{"tolerence", keys, "tolerances", "a wrong letter and a missing one"},
		{"mdoel", keys, "model", "exchanged neighbours"},
		{"Cases", keys, "cases", "case does not count"},
		{"replay", keys, "", "nothing near"},
		{"", keys, "", "nothing asked"},
		{"x", keys, "", "too short to guess"},
		{"ab", []string{"xy"}, "", "nothing would remain"},
		{"model", nil, "", "nothing to choose from"},
		{"layer.1.atention", layers, "model.encoder.layer.1.attention", "the end of a dotted name"},
		{"embeddings.layer_norm", layers, "model.embeddings.LayerNorm", "underscores do not count"},
		{"model.encoder.layer.1.attention.slef", layers, "model.encoder.layer.1.attention.self", "whole name"},
		{"layer.9.attention", layers, "model.encoder.layer.0.attention", "the first of equally near ones"},
		{"lm_head", layers, "", "another layer is not a slip"},
	} {
		got, ok := label.Nearest(tt.name, tt.in)
		assert.Equal(t, tt.want, got, "%q: %s", tt.name, tt.reason)
		assert.Equal(t, tt.want != "", ok, "%q: %s", tt.name, tt.reason)
	}
}
