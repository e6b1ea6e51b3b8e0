package checkpoint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// isRead reports whether a setting is read of a key, or it holds keys that [Flat] has moved out.
func isRead(key string) bool {
	return key == ggufMark || slices.Contains(flattened, key) ||
		slices.ContainsFunc(settings, func(s setting) bool { return slices.Contains(s.keys, key) })
}

// harmless are keys that change nothing of what a forward pass computes for inference: names, types, which
// encoding says, what training and generation read.
var harmless = []string{"architectures", "auto_map", "transformers_version", "name_or_path", "torch_dtype", "dtype", "use_bfloat16", "torchscript",
	"use_cache", "initializer_range", "initializer_factor", "pretraining_tp", "gradient_checkpointing", "quantization", "quantization_config",
	"return_dict", "output_attentions", "output_hidden_states", "output_router_logits", "router_aux_loss_coef", "attn_implementation",
	"id2label", "label2id", "problem_type", "finetuning_task", "task_specific_params", "tokenizer_class", "prefix", "pad_token_id",
	"sep_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens",
	"max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k",
	"top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
	"num_return_sequences", "output_scores", "return_dict_in_generate", "remove_invalid_values", "exponential_decay_length_penalty",
	"tf_legacy_loss"}

// others lists the keys of two objects that differ, of objects in these with their path.
func others(path string, ref, cand map[string]any) (out []Difference) {
	for _, key := range slices.Sorted(maps.Keys(ref)) {
		a, b := ref[key], cand[key]
		if a == nil || b == nil || isRead(key) || slices.Contains(harmless, key) || strings.HasPrefix(key, "_") ||
			strings.Contains(key, "dropout") || key == "model_type" && cand[ggufMark] != ref[ggufMark] {
			continue
		}
		x, isObject := a.(map[string]any)
		y, both := b.(map[string]any)
		switch {
		case isObject && both:
			out = append(out, others(path+key+".", x, y)...)
		case !same(a, b):
			out = append(out, Difference{Setting: path + key, Reference: asJSON(a), Candidate: asJSON(b)})
		}
	}
	return out
}

// asJSON is a value as config.json has it, cut where it is long.
func asJSON(v any) string {
	const most = 80
	text, _ := json.Marshal(v) // it was read of JSON
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}
