package checkpoint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

func TestDiff(t *testing.T) {
	config := func(text string) checkpoint.Config {
		c := checkpoint.Config{}
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		return checkpoint.Flat(c)
	}
	llamaGGUF := checkpoint.GGUFConfig(map[string]string{"general.architecture": "llama", "llama.attention.head_count": "4",
		"llama.embedding_length": "64", "llama.attention.layer_norm_rms_epsilon": "9.99999974738e-06"})
	for _, r := range []struct {
		ref, cand checkpoint.Config
		want      []string
		reason    string
	}{
		{config(`{"model_type": "llama", "rope_theta": 5e5}`), config(`{"model_type": "llama"}`),
			[]string{"theta is 500000, the candidate has 10000 (by default: its config does not say)"}, "a default"},
		{config(`{"model_type": "llama", "rope_theta": 1e4}`), config(`{"model_type": "llama"}`), nil, "the default is said"},
		{config(`{"model_type": "llama", "rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8}}`),
			config(`{"model_type": "llama", "rope_theta": 5e5}`), []string{"rope scaling is llama3, the candidate has none " +
				"(by default: its config does not say)"}, "scaling is left out"},
		{config(`{"model_type": "mystery"}`), config(`{"model_type": "mystery", "rms_norm_eps": 1e-5}`), nil, "no default is known"},
		{config(`{"model_type": "mixtral"}`), config(`{"model_type": "mixtral", "rms_norm_eps": 1e-6}`),
			[]string{"eps is 1e-05 (by default: its config does not say), the candidate has 1e-06"}, "the type's own default"},
		{config(`{"model_type": "llama", "rms_norm_eps": 1e-5, "num_attention_heads": 4, "hidden_size": 64, "rope_theta": 5e5}`), llamaGGUF,
			[]string{"theta is 500000, the candidate has 10000 (by default: its config does not say)"}, "a .gguf file without rope.freq_base"},
		{config(`{"model_type": "llama", "rms_norm_eps": 1e-5, "rope_theta": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 2}}`),
			checkpoint.GGUFConfig(map[string]string{"general.architecture": "llama"}), nil, "nor what it would say"},
		{config(`{"hidden_act": "gelu_new"}`), config(`{"hidden_act": "gelu_pytorch_tanh"}`), nil, "two names of one function"},
		{config(`{"num_attention_heads": 8, "num_key_value_heads": 2}`), config(`{"num_attention_heads": 8}`),
			[]string{"kv heads is 2, the candidate has 8 (by default: its config does not say)"}, "as many as heads"},
		{config(`{"sliding_window": 4096, "use_sliding_window": false}`), config(`{"sliding_window": null}`), nil, "no window twice"},
		{config(`{"sliding_window": 4096}`), config(`{"sliding_window": null}`), []string{"window is 4096, the candidate has 0"}, "one without a window"},
		{config(`{"eos_token_id": [1, 2]}`), config(`{"eos_token_id": 1}`), []string{"EOS is [1 2], the candidate has 1"}, "one of two"},
		{config(`{"norm_topk_prob": true, "use_cache": true, "attention_dropout": 0.1, "dtype": "float32", "_x": 1}`),
			config(`{"norm_topk_prob": false, "use_cache": false, "attention_dropout": 0, "dtype": "bfloat16", "_x": 2}`),
			[]string{"norm_topk_prob is true, the candidate has false"}, "a key that no table has, and those that change no number"},
		{config(`{"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 1, "factor": 8}, "layer_types": ["a", "b"]}`),
			config(`{"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 2, "factor": 8}, "layer_types": ["a", "a"]}`),
			[]string{`layer_types is ["a","b"], the candidate has ["a","a"]`, "rope_scaling.low_freq_factor is 1, the candidate has 2"},
			"lists, and keys of an object"},
		{config(`{"mystery": 1, "none": null}`), config(`{"none": 2}`), nil, "what one of them does not say is not known"},
		{nil, config(`{"rope_theta": 1}`), nil, "no config, nothing to compare"},
	} {
		var got []string
		for _, d := range checkpoint.Diff(r.ref, r.cand) {
			got = append(got, d.String())
		}
		assert.Equal(t, r.want, got, r.reason)
	}
	all := ""
	for _, kind := range strings.Fields("llama mistral mixtral gemma gemma2 gemma3_text olmo2 starcoder2 cohere stablelm phi3 phi gpt_oss gpt2 gpt_neox falcon bloom " +
		"opt gptj bert roberta distilbert smollm3 glm4 mystery") { // each with what no model has, and with what it has by default
		odd := `{"model_type": %q, "rms_norm_eps": 9, "rope_theta": 9, "rope_scaling": {"type": "odd", "factor": 9}, "num_attention_heads": 6, "num_key_value_heads": 5,
			"head_dim": 9, "hidden_size": 24, "num_hidden_layers": 9, "sliding_window": 9, "attn_logit_softcapping": 9, "final_logit_softcapping": 9, "hidden_act": "odd", "tie_word_embeddings": false}`
		for _, d := range checkpoint.Diff(config(fmt.Sprintf(odd, kind)), config(fmt.Sprintf(`{"model_type": %q, "num_attention_heads": 3, "hidden_size": 12}`, kind))) {
			all += fmt.Sprintf("%s: %s %v\n", kind, d.String(), d.Depend)
		}
	}
	said(t, all)
	d := checkpoint.Diff(config(`{"rope_theta": 1}`), config(`{"rope_theta": 2}`))
	require.Len(t, d, 1)
	assert.True(t, d[0].Concerns("model.layers.3.self_attn"), "rotates")
	assert.False(t, d[0].Concerns("model.layers.3.mlp.down_proj"), "does not")
}
