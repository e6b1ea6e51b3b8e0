package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

func TestEOS(t *testing.T) {
	for _, c := range []struct {
		generation, config string
		want               []int
		reason             string
	}{
		{`{"eos_token_id": 2}`, `{}`, []int{2}, "one"},
		{`{"eos_token_id": [1, 106]}`, `{"eos_token_id": 1}`, []int{1, 106}, "several, and one of them again"},
		{``, `{"text_config": {"eos_token_id": 7}}`, []int{7}, "of the text model"},
		{`{"eos_token_id": null}`, `{"eos_token_id": "x"}`, nil, "none"},
		{`[`, `{"eos_token_id": 0}`, []int{0}, "a damaged file says nothing"},
		{``, ``, nil, "no files"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"generation_config.json": c.generation, "config.json": c.config} {
			if text != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
		}
		assert.Equal(t, c.want, checkpoint.EOS(dir), c.reason)
	}
}

func TestEOSToken(t *testing.T) {
	for text, want := range map[string]string{`{"eos_token": "</s>"}`: "</s>", `{"eos_token": {"content": "<eos>"}}`: "<eos>",
		`{"eos_token": null}`: "", `{}`: "", `{`: "", `{"eos_token": 3}`: ""} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(text), 0o644))
		assert.Equal(t, want, checkpoint.EOSToken(dir), text)
	}
	assert.Empty(t, checkpoint.EOSToken(t.TempDir()))
}

// A hub model lies where its packages keep it.
func TestSnapshot(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	dir := filepath.Join(cache, "models--org--name")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "snapshots", "abc"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "refs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "refs", "main"), []byte("abc\n"), 0o644))
	for _, c := range []struct{ model, revision, want string }{{"org/name", "", "abc"}, {"org/name", "abc", "abc"}, {"org/name", "def", ""},
		{"org/other", "", ""}, {"../x", "", ""}} {
		want := c.want
		if want != "" {
			want = filepath.Join(dir, "snapshots", want)
		}
		assert.Equal(t, want, checkpoint.Snapshot(c.model, c.revision), "%s %s", c.model, c.revision)
	}
}

func TestHubCache(t *testing.T) {
	user, err := os.UserHomeDir()
	require.NoError(t, err)
	hub := filepath.Join("huggingface", "hub")
	for _, c := range []struct {
		env    map[string]string
		want   string
		reason string
	}{
		{map[string]string{"HF_HUB_CACHE": "a", "HF_HOME": "b", "XDG_CACHE_HOME": "c"}, "a", "the cache itself"},
		{map[string]string{"HF_HOME": "b", "XDG_CACHE_HOME": "c"}, filepath.Join("b", "hub"), "all of Hugging Face's"},
		{map[string]string{"XDG_CACHE_HOME": "c"}, filepath.Join("c", hub), "all caches"},
		{nil, filepath.Join(user, ".cache", hub), "the usual one"},
	} {
		assert.Equal(t, c.want, checkpoint.HubCache(func(key string) string { return c.env[key] }), c.reason)
	}
}

// What stands beside the weights, in the files of old and new versions.
func TestFolder(t *testing.T) {
	image := func(kv ...any) checkpoint.Config {
		c := checkpoint.Config{}
		for i := 0; i < len(kv); i += 2 {
			c[kv[i].(string)] = kv[i+1]
		}
		return c
	}
	for _, c := range []struct {
		files        map[string]string
		hasTokenizer bool
		template     string
		image        checkpoint.Config
		reason       string
	}{
		{nil, false, "", nil, "nothing"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": "old"}`}, true, "old", nil, "in the tokenizer's config"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": "old"}`, "processor_config.json": `{"chat_template": "newer"}`}, true, "newer", nil, "the processor's goes first"},
		{map[string]string{"chat_template.json": `{"chat_template": "own"}`, "processor_config.json": `{"chat_template": "newer"}`}, false, "own", nil, "then a file of its own"},
		{map[string]string{"chat_template.jinja": "text", "chat_template.json": `{"chat_template": "own"}`}, false, "text", nil, "as text"},
		{map[string]string{"preprocessor_config.json": `{"size": 2}`}, false, "", image("size", 2.0), "images"},
		{map[string]string{"preprocessor_config.json": `{"size": 2}`, "processor_config.json": `{"image_processor": {"size": 3}, "image_seq_length": 9}`}, false, "",
			image("size", 3.0, "image_seq_length", 9.0), "in the processor's config"},
		{map[string]string{"preprocessor_config.json": `{"size": 2}`, "processor_config.json": `{"image_seq_length": 9}`}, false, "",
			image("size", 2.0, "image_seq_length", 9.0), "its length elsewhere"},
		{map[string]string{"processor_config.json": `{"image_seq_length": 9}`}, false, "", nil, "a length alone"},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		assert.Equal(t, c.hasTokenizer, checkpoint.HasTokenizer(dir), c.reason)
		assert.Equal(t, c.template, checkpoint.ChatTemplate(dir), c.reason)
		assert.Equal(t, c.image, checkpoint.ImageProcessor(dir), c.reason)
	}
	for text, heads := range map[string][2]int{`{"num_attention_heads": 8}`: {8, 8}, `{"num_attention_heads": 8, "num_key_value_heads": 2}`: {8, 2}, `{"n_head": 4, "num_kv_heads": 1}`: {4, 1},
		`{"num_attention_heads": -8, "num_key_value_heads": -2}`: {0, 0}, `{}`: {0, 0}} {
		path := filepath.Join(t.TempDir(), "config.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		c, err := checkpoint.ReadConfig(path)
		require.NoError(t, err)
		assert.Equal(t, heads, [2]int{c.Heads(), c.KVHeads()}, text)
	}
}
