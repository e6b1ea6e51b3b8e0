package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

// The tiny model has the weights that its config asks for, which an engine can run without a NaN, the same each time.
func TestTinyModel(t *testing.T) {
	dir, again := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, again} {
		require.NoError(t, tinyModel(d))
	}
	one, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(again, "model.safetensors"))
	require.NoError(t, err)
	assert.Equal(t, one, two)
	c, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	n := func(key string) int { i, _ := c.Int(key); return i }
	hidden, inner, vocab, kv := n("hidden_size"), n("intermediate_size"), n("vocab_size"), n("num_key_value_heads")*n("head_dim")
	want := map[string][]int{"model.embed_tokens": {vocab, hidden}, "model.norm": {hidden}, "lm_head": {vocab, hidden}}
	for i := range n("num_hidden_layers") {
		for name, shape := range map[string][]int{"input_layernorm": {hidden}, "post_attention_layernorm": {hidden},
			"self_attn.q_proj": {hidden, hidden}, "self_attn.k_proj": {kv, hidden}, "self_attn.v_proj": {kv, hidden}, "self_attn.o_proj": {hidden, hidden},
			"mlp.gate_proj": {inner, hidden}, "mlp.up_proj": {inner, hidden}, "mlp.down_proj": {hidden, inner}} {
			want[fmt.Sprintf("model.layers.%d.%s", i, name)] = shape
		}
	}
	w, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer w.Close()
	assert.Len(t, w.Tensors, len(want))
	for name, shape := range want {
		x := w.Tensors[name+".weight"]
		require.NotNil(t, x, name)
		assert.Equal(t, shape, x.Shape(), name)
		values := make([]float64, x.Len())
		x.Float64s(values, 0)
		if name == "lm_head" {
			for _, v := range values[259*hidden:] {
				require.Zero(t, v, "a row without a token is never chosen")
			}
			values = values[:259*hidden]
		}
		mean, square := 0.0, 0.0
		for _, v := range values {
			mean += v / float64(len(values))
		}
		for _, v := range values {
			square += (v - mean) * (v - mean) / float64(len(values))
		}
		about, spread := 0.0, 0.08
		if len(shape) == 1 {
			about, spread = 1, 0.1
		}
		assert.InDelta(t, about, mean, 0.05, name)
		assert.InDelta(t, spread, math.Sqrt(square), 0.03, name)
	}
}

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		version, least string
		want           bool
	}{{"3.10", "3.10", true}, {"3.9", "3.10", false}, {"3.11.2", "3.10", true}, {"4.0", "3.10", true}, {"2.35", "2.34", true}, {"2", "2.34", false}, {"", "2.34", false}} {
		assert.Equal(t, tt.want, atLeast(tt.version, tt.least), "%s, %s", tt.version, tt.least)
	}
}

// The name of what was judged is part of a file's name.
func TestPlain(t *testing.T) {
	for name, want := range map[string]string{"a-b_c.D9": "a-b_c.D9", "../x y": "_x_y", "größe": "gr__e", "z~Z[": "z_Z_", "@`{:/": "_____",
		strings.Repeat("a", 90): strings.Repeat("a", 80)} {
		assert.Equal(t, want, plain(name), name)
	}
}

func TestTokens(t *testing.T) {
	assert.Equal(t, "1 2 3", tokens([]int{1, 2, 3}))
	many := slices.Repeat([]int{7}, 66)
	assert.Equal(t, strings.TrimSpace(strings.Repeat("7 ", 64)), tokens(many[:64]))
	assert.Equal(t, strings.Repeat("7 ", 64)+"… and 2 more", tokens(many))
}
