package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// weightFile writes a file with one tensor.
func weightFile(t *testing.T, path, key string) {
	t.Helper()
	x, err := tensor.Of([]float32{1, 2}, 2)
	require.NoError(t, err)
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, []tensor.Named{{Name: key, Tensor: x}}, nil))
	require.NoError(t, f.Close())
}

func TestOpenWeights(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[1]") // a folder's name is not a pattern
	require.NoError(t, os.Mkdir(dir, 0o755))
	one, two := filepath.Join(dir, "model-1.safetensors"), filepath.Join(dir, "model-2.safetensors")
	weightFile(t, one, "a.weight")
	weightFile(t, two, "b.weight")
	index := filepath.Join(dir, "model.safetensors.index.json")
	for _, c := range []struct {
		index  string
		paths  []string
		want   []string
		err    string
		reason string
	}{
		{"", nil, nil, "", "none"},
		{"", []string{one}, []string{"a.weight"}, "", "a file"},
		{"", []string{one, two}, []string{"a.weight", "b.weight"}, "", "two files"},
		{"", []string{dir}, []string{"a.weight", "b.weight"}, "", "a folder"},
		{`{"weight_map": {"a.weight": "model-1.safetensors"}}`, []string{dir}, []string{"a.weight"}, "",
			"a folder with an index: only what it names"},
		{`{"weight_map": {"a.weight": "model-1.safetensors", "b.weight": "model-2.safetensors"}}`,
			[]string{index}, []string{"a.weight", "b.weight"}, "", "an index"},
		{"", []string{one, one}, nil, "a.weight is also in another of the files", "the same twice"},
		{"", []string{filepath.Join(dir, "none.safetensors")}, nil, "none.safetensors", "no such file"},
		{`{"weight_map": {"a.weight": "../model-1.safetensors"}}`,
			[]string{index}, nil, "want the name of a file next to the index", "a path that leaves the folder"},
		{`{"weight_map": {"a.weight": "/etc/passwd"}}`,
			[]string{index}, nil, "want the name of a file next to the index", "an absolute path"},
		{`{"weight_map": {}}`, []string{index}, nil, "the weight_map is empty", "an empty index"},
		{`[`, []string{index}, nil, "want an index with a weight_map", "no index"},
	} {
		require.NoError(t, os.RemoveAll(index))
		if c.index != "" {
			require.NoError(t, os.WriteFile(index, []byte(c.index), 0o644))
		}
		w, err := checkpoint.Open(c.paths...)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, c.reason)
			continue
		}
		require.NoError(t, err, c.reason)
		var got []string
		for key := range w.Tensors {
			got = append(got, key)
		}
		assert.ElementsMatch(t, c.want, got, c.reason)
		require.NoError(t, w.Close())
	}
}

func TestReadModelConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	for _, c := range []struct {
		text   string
		size   int
		theta  float64
		reason string
	}{
		{`{"hidden_size": 64, "text_config": {"hidden_size": 8, "rope_theta": 1e6}}`, 64, 1e6, "the outer level has precedence, the inner one has the rest"},
		{`{"text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}}`, 0, 5e5, "where transformers 5 writes it"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		read, err := checkpoint.ReadConfig(path)
		require.NoError(t, err)
		size, said := read.Int("hidden_size")
		theta, _ := read.Float("rotary_base", "rope_theta")
		assert.Equal(t, []any{c.size, c.size > 0, c.theta}, []any{size, said, theta}, c.reason)
	}
	require.NoError(t, os.WriteFile(path, []byte(`[]`), 0o644))
	_, err := checkpoint.ReadConfig(path)
	assert.ErrorContains(t, err, "config.json: want a JSON object")
}

// Whatever an index says, nothing outside of its folder is opened and nothing panics.
func FuzzOpenWeightsIndex(f *testing.F) {
	f.Add([]byte(`{"weight_map": {"a": "b.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../b"}}`))
	f.Add([]byte(`{"weight_map": null}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "model.safetensors.index.json")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		if w, err := checkpoint.Open(path); err == nil {
			assert.NoError(t, w.Close())
			assert.Fail(t, "there is no weight in this folder", string(data))
		}
	})
}
