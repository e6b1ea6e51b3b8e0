package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Difference is a setting that two configs read otherwise.
type Difference struct {
	Setting   string   `json:"setting"`            // "theta"
	Reference string   `json:"reference"`          // what holds there
	Candidate string   `json:"candidate"`          //
	Defaults  []string `json:"defaults,omitempty"` // the sides that say nothing, so that a default holds: "reference", "candidate"
}

// String is "theta is 500000, the candidate has 10000 (by default)".
func (d Difference) String() string {
	by := func(side string) string {
		if slices.Contains(d.Defaults, side) {
			return " (by default: its config does not say)"
		}
		return ""
	}
	return fmt.Sprintf("%s is %s%s, the candidate has %s%s", d.Setting, d.Reference, by("reference"), d.Candidate, by("candidate"))
}

// setting is something that decides what a model computes.
type setting struct {
	name string
	keys []string
	// read returns a number, a text or a bool; nil if the config does not say.
	read func(c Config, keys []string) any
	// usual is what holds then, in transformers; nil if nothing is known, or only by the type of the model.
	usual func(c Config) any
}

// scalar is the number, the text or the bool of the first key that has one.
func scalar(c Config, keys []string) any {
	for _, k := range keys {
		switch v := c[k].(type) {
		case float64, bool:
			return v
		case int:
			return float64(v)
		case string:
			if v != "" {
				return v
			}
		}
	}
	return nil
}

// token reads one token id, or several as a text.
func token(c Config, keys []string) any {
	switch v := c[keys[0]].(type) {
	case float64:
		return v
	case []any:
		if len(v) == 1 {
			return v[0]
		}
		return fmt.Sprint(v)
	}
	return nil
}

// size reads how many there are.
func size(c Config, keys []string) any {
	if n := c.Size(keys...); n > 0 {
		return float64(n)
	}
	return nil
}

// settings lists what is compared.
var settings = []setting{
	{"eps", []string{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}, scalar, nil},
	{"theta", []string{"rope_theta", "rotary_emb_base"}, scalar, nil},
	{"rope scaling", []string{"rope_scaling_type", "rope_type", "type"}, scaling, func(Config) any { return "none" }},
	{"rope factor", []string{"factor", "rope_scaling_factor"}, factor, nil},
	{"heads", headKeys, size, nil},
	{"kv heads", kvKeys, scalar, func(c Config) any { return size(c, headKeys) }},
	{"head size", []string{"head_dim"}, scalar, func(c Config) any {
		if n := c.Heads(); n > 0 && c.Hidden() > 0 && c.Size("kv_lora_rank") == 0 { // whose heads have two sizes
			return float64(c.Hidden() / n)
		}
		return nil
	}},
	{"hidden size", hiddenKeys, size, nil},
	{"layers", []string{"num_hidden_layers", "n_layer", "n_layers"}, scalar, nil},
	{"window", []string{"sliding_window", "use_sliding_window"}, window, nil},
	{"attention softcap", []string{"attn_logit_softcapping"}, scalar, nil},
	{"logit softcap", []string{"final_logit_softcapping"}, scalar, nil},
	{"activation", []string{"hidden_act", "hidden_activation", "activation_function"}, scalar, nil},
	{"tied", []string{"tie_word_embeddings"}, scalar, nil},
	{"vocabulary", []string{"vocab_size"}, scalar, nil},
	{"BOS", []string{"bos_token_id"}, token, nil},
	{"EOS", []string{"eos_token_id"}, token, nil},
}

// ropes have the keys of rope scaling.
var ropes = []string{"rope_scaling", "rope_parameters"}

func factor(c Config, keys []string) any {
	for _, outer := range ropes {
		if v, ok := c.object(outer)["factor"].(float64); ok {
			return v
		}
	}
	return scalar(c, keys[1:])
}

// scaling reads the kind of rope scaling. A .gguf file has some of them as tensors.
func scaling(c Config, _ []string) any {
	kind := c.String("rope_scaling_type")
	for _, outer := range ropes {
		kind = cmp.Or(kind, c.object(outer).String("rope_type", "type"))
	}
	switch kind {
	case "":
		return nil
	case "default":
		return "none"
	}
	return kind
}

func window(c Config, keys []string) any {
	v, said := c["sliding_window"]
	if c["use_sliding_window"] == false || said && v == nil {
		return 0.0
	}
	return scalar(c, keys[:1])
}

// usual has the defaults of transformers 5 by model_type and setting, where they are not those of "".
var usual = map[string]map[string]any{
	"":        {"eps": 1e-6, "theta": 1e4, "window": 0.0, "activation": "silu", "tied": false},
	"mistral": {"window": 4096.0},
	"mixtral": {"eps": 1e-5, "theta": 1e6},
	"gemma":   {"activation": "gelu_pytorch_tanh", "tied": true},
	"gemma2": {"activation": "gelu_pytorch_tanh", "tied": true, "window": 4096.0, "logit softcap": 30.0,
		"attention softcap": 50.0},
	"gemma3_text": {"activation": "gelu_pytorch_tanh", "tied": true, "window": 4096.0, "theta": 1e6},
	"olmo2":       {"eps": 1e-5},
	"starcoder2":  {"eps": 1e-5, "activation": "gelu_pytorch_tanh", "tied": true},
	"cohere":      {"eps": 1e-5, "theta": 5e5, "tied": true},
	"stablelm":    {"eps": 1e-5},
	"phi3":        {"eps": 1e-5},
	"phi":         {"eps": 1e-5, "activation": "gelu_new"},
	"gpt_oss":     {"eps": 1e-5, "theta": 1.5e5, "window": 128.0},
	"gpt2":        {"eps": 1e-5, "activation": "gelu_new", "tied": true, "theta": nil},
	"gpt_neox":    {"eps": 1e-5, "activation": "gelu"},
	"falcon":      {"eps": 1e-5, "activation": "gelu", "tied": true},
	"bloom":       {"eps": 1e-5, "activation": "gelu", "tied": true, "theta": nil},
	"opt":         {"eps": 1e-5, "activation": "relu", "tied": true, "theta": nil},
	"gptj":        {"eps": 1e-5, "activation": "gelu_new", "theta": nil},
	"bert":        {"eps": 1e-12, "activation": "gelu", "tied": true, "theta": nil},
	"roberta":     {"eps": 1e-12, "activation": "gelu", "tied": true, "theta": nil},
	"distilbert":  {"eps": 1e-12, "activation": "gelu", "tied": true, "theta": nil},
	"smollm3":     {"theta": 2e6, "tied": true},
	"glm4":        {"eps": 1.5625e-7},
}

// likeLlama are the types whose defaults are those of "".
var likeLlama = []string{"llama", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "granite", "deepseek_v3"}

// usually is the default of a setting. A .gguf file says all that llama.cpp asks of it, but for
// theta, whose default is 10000 there.
func (c Config) usually(s setting) any {
	kind := c.String("model_type")
	own, known := usual[kind]
	v, is := own[s.name]
	switch {
	case c.isGGUF() && s.name == "theta":
		return 1e4
	case s.usual != nil && !(c.isGGUF() && s.name == "rope scaling"):
		return s.usual(c)
	case c.isGGUF() || !known && !slices.Contains(likeLlama, kind):
		return nil
	case is:
		return v
	}
	return usual[""][s.name]
}

// isGGUF reports whether a config is the metadata of a .gguf file.
func (c Config) isGGUF() bool { return c[ggufMark] == true }

// sameActivation are names of one function.
var sameActivation = [][]string{{"silu", "swish"}, {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_tanh"}}

// Diff lists what two configs read otherwise. A setting that a config does not say has its default;
// where that is not known it is not compared. Of keys that are not among the settings it lists those that both
// have with other values, unless these are known to change no number.
func Diff(ref, cand Config) (out []Difference) {
	if ref == nil || cand == nil {
		return nil
	}
	for _, s := range settings {
		d := Difference{Setting: s.name}
		value := func(c Config, side string) any {
			v := s.read(c, s.keys)
			if v == nil {
				if v = c.usually(s); v != nil {
					d.Defaults = append(d.Defaults, side)
				}
			}
			return v
		}
		a, b := value(ref, "reference"), value(cand, "candidate")
		if a == nil || b == nil || same(a, b) {
			continue
		}
		d.Reference, d.Candidate = shown(a), shown(b)
		out = append(out, d)
	}
	return append(out, others("", ref, cand)...)
}

func shown(v any) string {
	if f, ok := v.(float64); ok {
		return fmt.Sprintf("%.7g", f)
	}
	return fmt.Sprint(v)
}

// same compares two settings; numbers as float32 has them, in which .gguf files keep them.
func same(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || math.Abs(x-y) <= 1e-6*math.Abs(x))
	case string:
		y, ok := b.(string)
		return ok && (x == y || slices.ContainsFunc(sameActivation, func(s []string) bool { return slices.Contains(s, x) && slices.Contains(s, y) }))
	}
	return reflect.DeepEqual(a, b)
}

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
