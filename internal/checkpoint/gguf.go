package checkpoint

import (
	"strconv"
	"strings"
)

// ggufKeys are the keys of GGUF by those of config.json, after a dot those behind the name of the architecture.
var ggufKeys = map[string]string{
	"hidden_size": ".embedding_length", "num_hidden_layers": ".block_count",
	"intermediate_size": ".feed_forward_length", "max_position_embeddings": ".context_length",
	"num_attention_heads": ".attention.head_count", "num_key_value_heads": ".attention.head_count_kv",
	"head_dim": ".attention.key_length", "rms_norm_eps": ".attention.layer_norm_rms_epsilon",
	"layer_norm_eps": ".attention.layer_norm_epsilon", "rope_theta": ".rope.freq_base",
	"rope_scaling_factor": ".rope.scaling.factor", "sliding_window": ".attention.sliding_window",
	"num_local_experts": ".expert_count", "num_experts_per_tok": ".expert_used_count", "vocab_size": ".vocab_size",
	"final_logit_softcapping": ".final_logit_softcapping", "attn_logit_softcapping": ".attn_logit_softcapping",
	"bos_token_id": "tokenizer.ggml.bos_token_id", "eos_token_id": "tokenizer.ggml.eos_token_id",
}

// ggufMark is the key that only the config of a .gguf file has.
const ggufMark = "gguf"

// GGUFConfig returns the config that the metadata of a .gguf file stands for, by the keys of
// Hugging Face. model_type is the architecture.
func GGUFConfig(metadata map[string]string) Config {
	arch := metadata["general.architecture"]
	c := Config{"model_type": arch, ggufMark: true}
	for key, from := range ggufKeys {
		if strings.HasPrefix(from, ".") {
			from = arch + from
		}
		if v, err := strconv.ParseFloat(metadata[from], 64); err == nil {
			c[key] = v
		}
	}
	if text := metadata[arch+".rope.scaling.type"]; strings.TrimSpace(text) != "" {
		c["rope_scaling_type"] = text
	}
	return c
}
