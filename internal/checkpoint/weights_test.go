package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
)

func TestFind(t *testing.T) {
	w := checkpoint.Weights{}
	for i, key := range []string{"model.embed_tokens.weight", "model.norm.weight", "model.layers.0.norm.weight", "bert.pooler.dense.weight", "weight",
		"a.two.weight", "b.two.weight"} {
		x, err := tensor.Of([]float32{float32(i)}, 1)
		require.NoError(t, err)
		w[key] = x
	}
	aliases := map[string]string{"lm_head.weight": "model.embed_tokens.weight", "model.embed_tokens.weight": "shared.weight"}
	for _, tt := range []struct{ name, want, reason string }{
		{"model.norm.weight", "model.norm.weight", "by name"},
		{"shared.weight", "model.embed_tokens.weight", "a tied weight by its other name"},
		{"norm.weight", "model.norm.weight", "a prefix is missing: the nearest"},
		{"pooler.dense.weight", "bert.pooler.dense.weight", "a prefix is missing"},
		{"causal.model.norm.weight", "model.norm.weight", "a prefix too many"},
		{"weight", "weight", "a name without a layer"},
		{"head.weight", "", "the last word alone is no name of it"},
		{"layers.1.norm.weight", "", "another layer"},
		{"two.weight", "", "which of two it is, is not known"},
	} {
		got, err := w.Find(tt.name, []int{1}, aliases)
		if tt.want == "" {
			assert.ErrorContains(t, err, "the checkpoint has no weight "+tt.name, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Same(t, w[tt.want], got, tt.reason)
	}
}

func TestStacked(t *testing.T) {
	w := checkpoint.Weights{}
	put := func(shape []int, keys ...string) {
		for _, key := range keys {
			x := make([]float32, shape[0]*shape[1])
			for i := range x {
				x[i] = float32(10*len(w) + i)
			}
			var err error
			w[key], err = tensor.Of(x, shape...)
			require.NoError(t, err)
		}
	}
	put([]int{1, 2}, "a.experts.0.up.weight", "a.experts.0.gate.weight", "a.experts.1.up.weight", "a.experts.1.gate.weight")
	put([]int{2, 1}, "a.experts.0.down.weight", "a.experts.1.down.weight", "lacking.experts.0.down.weight")
	put([]int{2, 1}, "0.down.weight", "1.down.weight") // of no layer
	put([]int{2, 2}, "mixed.0.w", "mixed.1.w", "more.0.w", "more.1.w")
	put([]int{1, 2}, "mixed.0.gate", "mixed.0.up", "mixed.1.gate", "mixed.1.up", "more.0.gate", "more.1.gate")
	put([]int{2, 2}, "square.0.w1.weight", "square.0.w2.weight", "square.1.w1.weight", "square.1.w2.weight")
	for _, tt := range []struct {
		name   string
		shape  []int
		want   []float64
		reason string
	}{
		{"a.experts.gate_up", []int{2, 2, 2}, []float64{10, 11, 0, 1, 30, 31, 20, 21}, "gate before up, expert by expert"},
		{"a.experts.down", []int{2, 2, 1}, []float64{40, 41, 50, 51}, "one of its shape"},
		{"a.experts.down", []int{3, 2, 1}, nil, "more experts than there are"},
		{"lacking.experts.down", []int{2, 2, 1}, nil, "one is missing"},
		{"square.w", []int{2, 2, 2}, nil, "two of its shape: which it is, is not known"},
		{"b.experts.down", []int{2, 2, 1}, nil, "another layer"},
		{"mixed.w", []int{2, 2, 2}, nil, "one of its shape, or two halves"},
		{"more.w", []int{2, 2, 2}, []float64{110, 111, 112, 113, 120, 121, 122, 123}, "one half is none"},
	} {
		got := w.Stacked(tt.name, tt.shape)
		found, err := w.Find("model."+tt.name, tt.shape, map[string]string{tt.name: "model." + tt.name})
		assert.Equal(t, got, found, "by another name: "+tt.reason)
		assert.Equal(t, got == nil, err != nil, tt.reason)
		if tt.want == nil {
			assert.Nil(t, got, tt.reason)
			continue
		}
		require.NotNil(t, got, tt.reason)
		x := make([]float64, got.Len())
		got.Float64s(x, 0)
		assert.Equal(t, tt.want, x, tt.reason)
	}
}
