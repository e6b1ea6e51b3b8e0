package checkpoint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor/safetensors"
)

// A folder of GPTQ becomes one of float32, without what config.json said of it.
func TestWrite(t *testing.T) {
	from := filepath.Join("testdata", "quantised", "gptq_config", "model.safetensors")
	c, err := checkpoint.OpenQuantised(from)
	require.NoError(t, err)
	defer c.Close()
	require.NotEmpty(t, c.Quantised())
	model := t.TempDir()
	for name, text := range map[string]string{
		"config.json":                  `{"model_type": "llama", "quantization_config": {"bits": 4}, "text_config": {"quantization": {"bits": 4}}}`,
		"tokenizer.json":               `{"a": 1}`,
		"model.safetensors":            "not the weights",
		"model.safetensors.index.json": "{}",
		"q.gguf":                       "GGUF",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(model, name), []byte(text), 0o644))
	}
	dir := filepath.Join(t.TempDir(), "made")
	require.NoError(t, c.Write(dir, model))

	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, n := range names {
		got = append(got, n.Name())
	}
	assert.Equal(t, []string{"config.json", "model.safetensors", "tokenizer.json"}, got)
	var config map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &config))
	assert.Equal(t, map[string]any{"model_type": "llama", "text_config": map[string]any{}}, config)
	f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	require.Len(t, f.Tensors, len(c.Tensors))
	for _, w := range f.Tensors {
		want := c.Tensors[w.Name]
		require.NotNil(t, want, w.Name)
		require.Equal(t, want.Shape(), w.Shape())
		assert.Empty(t, w.Packing())
		for i := range want.Len() {
			require.Equal(t, want.At(i), w.At(i), "%s[%d]", w.Name, i)
		}
	}
}

// The names are those of Hugging Face, the rows of q and k in its order, the norms without 1.
func TestGGUF(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3", "gemma2", "phi3"} {
		c, err := checkpoint.OpenQuantised(filepath.Join("testdata", "gguf", arch+".gguf"))
		require.NoError(t, err)
		want, err := safetensors.Open(filepath.Join("testdata", "gguf", arch+".safetensors"))
		require.NoError(t, err)
		assert.Len(t, c.Tensors, len(want.Tensors), arch)
		for _, w := range want.Tensors {
			got := c.Tensors[w.Name]
			if !assert.NotNil(t, got, "%s: %s", arch, w.Name) {
				continue
			}
			require.Equal(t, w.Shape(), got.Shape(), "%s: %s", arch, w.Name)
			assert.Equal(t, len(w.Shape()) == 2, slices.Contains(c.Quantised(), w.Name), w.Name)
			part, low, high, grids := make([]float32, 7), make([]float32, 1), make([]float32, 1), 0
			for i := range w.Len() {
				require.Equal(t, w.At(i), got.At(i), "%s: %s[%d]", arch, w.Name, i)
				if got.Grid(low, high, i) != nil {
					require.True(t, min(low[0], high[0]) <= float32(w.At(i)) && float32(w.At(i)) <= max(low[0], high[0]), "%s: %s[%d] is within its grid", arch, w.Name, i)
					grids++
				}
				n := got.Float32s(part, i)
				require.Equal(t, float32(w.At(i+n-1)), part[n-1], "%s: %s[%d]", arch, w.Name, i+n-1)
			}
			assert.Equal(t, len(w.Shape()) == 2, grids == w.Len(), "%s: %s", arch, w.Name)
		}
		require.NoError(t, c.Close())
		require.NoError(t, want.Close())
	}
	for name, want := range map[string]string{
		"unknown": "blk.0.ffn_gate_exps.weight is none of the weights that are known of llama",
		"other":   `a model of the architecture "mamba"`,
	} {
		_, err := checkpoint.OpenQuantised(filepath.Join("testdata", "gguf", name+".gguf"))
		assert.ErrorContains(t, err, want)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	weightFile(t, filepath.Join(dir, "model.safetensors"), "a.weight")
	_, err := checkpoint.OpenQuantised(dir)
	assert.ErrorContains(t, err, "no weight is quantised")
	_, err = checkpoint.OpenQuantised(filepath.Join(dir, "none.gguf"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
