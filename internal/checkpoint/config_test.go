package checkpoint_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

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

// What stands beside the weights, in the files of old and new versions: testdata/TestFolder.want has what is read of it.
func TestFolder(t *testing.T) {
	const tokens, processor, images = "tokenizer_config.json", "processor_config.json", "preprocessor_config.json"
	all := ""
	for _, c := range []struct {
		reason string
		files  map[string]string
	}{
		{"nothing", nil},
		{"one token ends a text", map[string]string{"generation_config.json": `{"eos_token_id": 2}`, "config.json": `{}`}},
		{"several, and one of them again", map[string]string{"generation_config.json": `{"eos_token_id": [1, 106]}`, "config.json": `{"eos_token_id": 1}`}},
		{"of the text model", map[string]string{"config.json": `{"text_config": {"eos_token_id": 7}}`}},
		{"none", map[string]string{"generation_config.json": `{"eos_token_id": null}`, "config.json": `{"eos_token_id": "x"}`}},
		{"a damaged file says nothing", map[string]string{"generation_config.json": `[`, "config.json": `{"eos_token_id": 0}`}},
		{"its text", map[string]string{tokens: `{"eos_token": "</s>"}`}},
		{"its text in an object", map[string]string{tokens: `{"eos_token": {"content": "<eos>"}}`}},
		{"null for a text", map[string]string{tokens: `{"eos_token": null}`}},
		{"a number for a text", map[string]string{tokens: `{"eos_token": 3}`}},
		{"a damaged tokenizer", map[string]string{tokens: `{`}},
		{"a template in the tokenizer's config", map[string]string{tokens: `{"chat_template": "old"}`}},
		{"the processor's goes first", map[string]string{tokens: `{"chat_template": "old"}`, processor: `{"chat_template": "newer"}`}},
		{"then a file of its own", map[string]string{"chat_template.json": `{"chat_template": "own"}`, processor: `{"chat_template": "newer"}`}},
		{"as text", map[string]string{"chat_template.jinja": "text", "chat_template.json": `{"chat_template": "own"}`}},
		{"images", map[string]string{images: `{"size": 2}`}},
		{"images in the processor's config", map[string]string{images: `{"size": 2}`, processor: `{"image_processor": {"size": 3}, "image_seq_length": 9}`}},
		{"their length elsewhere", map[string]string{images: `{"size": 2}`, processor: `{"image_seq_length": 9}`}},
		{"a length alone", map[string]string{processor: `{"image_seq_length": 9}`}},
		{"heads", map[string]string{"config.json": `{"num_attention_heads": 8}`}},
		{"fewer of keys and values", map[string]string{"config.json": `{"num_attention_heads": 8, "num_key_value_heads": 2}`}},
		{"by other names", map[string]string{"config.json": `{"n_head": 4, "num_kv_heads": 1}`}},
		{"less than none", map[string]string{"config.json": `{"num_attention_heads": -8, "num_key_value_heads": -2}`}},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		config, _ := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
		all += fmt.Sprintf("%s: EOS %v %q, tokenizer %t, template %q, images %#v, heads %d, %d\n", c.reason, checkpoint.EOS(dir), checkpoint.EOSToken(dir),
			checkpoint.HasTokenizer(dir), checkpoint.ChatTemplate(dir), checkpoint.ImageProcessor(dir), config.Heads(), config.KVHeads())
	}
	said(t, all)
}

func TestDiff(t *testing.T) {
	config := func(text string) checkpoint.Config {
		c := checkpoint.Config{}
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		return checkpoint.Flat(c)
	}
	llamaGGUF := checkpoint.GGUFConfig(map[string]string{"general.architecture": "llama", "llama.attention.head_count": "4",
		"llama.embedding_length": "64", "llama.attention.layer_norm_rms_epsilon": "9.99999974738e-06"})
	all := ""
	for _, r := range []struct {
		ref, cand checkpoint.Config
		reason    string
	}{
		{config(`{"model_type": "llama", "rope_theta": 5e5}`), config(`{"model_type": "llama"}`), "a default"},
		{config(`{"model_type": "llama", "rope_theta": 1e4}`), config(`{"model_type": "llama"}`), "the default is said"},
		{config(`{"model_type": "llama", "rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8}}`), config(`{"model_type": "llama", "rope_theta": 5e5}`),
			"scaling is left out"},
		{config(`{"model_type": "mystery"}`), config(`{"model_type": "mystery", "rms_norm_eps": 1e-5}`), "no default is known"},
		{config(`{"model_type": "mixtral"}`), config(`{"model_type": "mixtral", "rms_norm_eps": 1e-6}`), "the type's own default"},
		{config(`{"model_type": "llama", "rms_norm_eps": 1e-5, "num_attention_heads": 4, "hidden_size": 64, "rope_theta": 5e5}`), llamaGGUF,
			"a .gguf file without rope.freq_base"},
		{config(`{"model_type": "llama", "rms_norm_eps": 1e-5, "rope_theta": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 2}}`), checkpoint.GGUFConfig(map[string]string{"general.architecture": "llama"}),
			"nor what it would say"},
		{config(`{"hidden_act": "gelu_new"}`), config(`{"hidden_act": "gelu_pytorch_tanh"}`), "two names of one function"},
		{config(`{"num_attention_heads": 8, "num_key_value_heads": 2}`), config(`{"num_attention_heads": 8}`), "as many as heads"},
		{config(`{"sliding_window": 4096, "use_sliding_window": false}`), config(`{"sliding_window": null}`), "no window twice"},
		{config(`{"sliding_window": 4096}`), config(`{"sliding_window": null}`), "one without a window"},
		{config(`{"eos_token_id": [1, 2]}`), config(`{"eos_token_id": 1}`), "one of two"},
		{config(`{"norm_topk_prob": true, "use_cache": true, "attention_dropout": 0.1, "dtype": "float32", "_x": 1}`), config(`{"norm_topk_prob": false, "use_cache": false, "attention_dropout": 0, "dtype": "bfloat16", "_x": 2}`),
			"a key that no table has, and those that change no number"},
		{config(`{"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 1, "factor": 8}, "layer_types": ["a", "b"]}`), config(`{"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 2, "factor": 8}, "layer_types": ["a", "a"]}`),
			"lists, and keys of an object"},
		{config(`{"mystery": 1, "none": null}`), config(`{"none": 2}`), "what one of them does not say is not known"},
		{nil, config(`{"rope_theta": 1}`), "no config, nothing to compare"},
	} {
		all += fmt.Sprintf("%s: %v\n", r.reason, checkpoint.Diff(r.ref, r.cand))
	}
	for _, kind := range strings.Fields("llama mistral mixtral gemma gemma2 gemma3_text olmo2 starcoder2 cohere stablelm phi3 phi gpt_oss gpt2 gpt_neox falcon bloom " +
		"opt gptj bert roberta distilbert smollm3 glm4 mystery") { // each with what no model has, and with what it has by default
		odd := `{"model_type": %q, "rms_norm_eps": 9, "rope_theta": 9, "rope_scaling": {"type": "odd", "factor": 9}, "num_attention_heads": 6, "num_key_value_heads": 5,
			"head_dim": 9, "hidden_size": 24, "num_hidden_layers": 9, "sliding_window": 9, "attn_logit_softcapping": 9, "final_logit_softcapping": 9, "hidden_act": "odd", "tie_word_embeddings": false}`
		for _, d := range checkpoint.Diff(config(fmt.Sprintf(odd, kind)), config(fmt.Sprintf(`{"model_type": %q, "num_attention_heads": 3, "hidden_size": 12}`, kind))) {
			all += fmt.Sprintf("%s: %s\n", kind, d)
		}
	}
	said(t, all)
}
