package checkpoint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
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
		{"", []string{filepath.Join("..", "..", "tensor", "torchpt", "testdata", "buffer.pt")}, []string{"x"}, "", "a file of torch.save"},
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

// Every command reads the same files of a folder, those that transformers loads, and says which it does not.
func TestLocate(t *testing.T) {
	const index = "model.safetensors.index.json"
	for _, tt := range []struct {
		files, want, unread string
		err                 string
		reason              string
	}{
		{"model.safetensors", "model.safetensors", "", "", "the usual"},
		{"part-1.safetensors part-2.safetensors " + index, "part-1.safetensors part-2.safetensors", "", "", "shards"},
		{"model.safetensors part-1.safetensors part-2.safetensors " + index, "model.safetensors",
			"part-1.safetensors part-2.safetensors " + index, "", "the file comes before the index"},
		{"model.safetensors model.fp16.safetensors", "model.safetensors", "model.fp16.safetensors", "", "another type beside it"},
		{"part-1.safetensors part-2.safetensors m.gguf " + index, "part-1.safetensors part-2.safetensors", "m.gguf", "", "beside shards"},
		{"model.safetensors m.gguf", "model.safetensors", "m.gguf", "", "a .gguf beside it"},
		{"m.gguf config.json", "m.gguf", "", "", "a .gguf alone"},
		{"a.safetensors b.safetensors", "a.safetensors b.safetensors", "", "", "without an index all are one set"},
		{"model.safetensors adapter_model.safetensors", "model.safetensors", "", "", "an adapter is no part of the model"},
		{"adapter_model.safetensors", "adapter_model.safetensors", "", "", "but may be asked for"},
		{"part-1.safetensors part-2.safetensors " + index + " other.safetensors.index.json", "", "", "several indices", "two indices"},
		{"a.gguf b.gguf", "", "", "several .gguf files, a.gguf, b.gguf: name the one that is meant", "two of them"},
		{"config.json", "", "", "no .safetensors or .gguf file", "nothing"},
	} {
		for _, name := range []string{"plain", "m[1]"} {
			dir := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.Mkdir(dir, 0o755))
			for _, f := range strings.Fields(tt.files) {
				data := []byte(nil)
				if strings.HasSuffix(f, ".index.json") {
					data = []byte(`{"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}`)
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), data, 0o644))
			}
			at, err := checkpoint.Locate(dir)
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err, tt.reason)
				continue
			}
			require.NoError(t, err, tt.reason)
			var got []string
			for _, f := range at.Files {
				got = append(got, filepath.Base(f))
			}
			if at.GGUF != "" {
				got = append(got, filepath.Base(at.GGUF))
			}
			assert.Equal(t, strings.Fields(tt.want), got, tt.reason)
			assert.Equal(t, strings.Fields(tt.unread), append([]string{}, at.Unread...), tt.reason)
			if tt.unread != "" {
				read := strings.Replace(tt.want, " part-2.safetensors", " and 1 more", 1)
				assert.Contains(t, strings.Join(checkpoint.Unread(dir), ""), "are those of "+read+"; not read: "+strings.Join(at.Unread, ", "), tt.reason)
			}
		}
	}
}

func TestElsewhereByIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m[1]")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(`{"weight_map": {"a": "1", "b": "2"}}`), 0o644))
	elsewhere, err := checkpoint.InOtherFiles(dir, "1")
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true, false}, []bool{elsewhere("a"), elsewhere("b"), elsewhere("c")})
	elsewhere, err = checkpoint.InOtherFiles(dir, "3")
	require.NoError(t, err)
	assert.Nil(t, elsewhere, "no index names it")
}
