package label_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/label"
)

func TestNearest(t *testing.T) {
	keys := []string{"model", "cases", "tolerances", "capture", "names", "ignore"}
	layers := []string{"model.encoder.layer.0.attention", "model.encoder.layer.1.attention",
		"model.encoder.layer.1.attention.self", "model.embeddings.LayerNorm"}
	tests := []struct {
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
	}
	for _, tt := range tests {
		got, ok := label.Nearest(tt.name, tt.in)
		assert.Equal(t, tt.want, got, "%q: %s", tt.name, tt.reason)
		assert.Equal(t, tt.want != "", ok, "%q: %s", tt.name, tt.reason)
	}
}
