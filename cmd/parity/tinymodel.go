package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// The tiny model: a Llama with random weights, of a size at which a run takes no time. The last
// rows of its vocabulary have no token.
const (
	tinyVocab, tinyHidden, tinyMLP, tinyLayers, tinyHeads, tinyKV = 320, 64, 128, 4, 4, 2
	tinyTokens                                                    = 3 + 256 // <s>, </s>, <pad>, and one for each byte
)

// tinyModel writes the model's folder: config.json, weights, and a tokenizer of bytes. It is the
// same at each call.
func tinyModel(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]any{
		"config.json": map[string]any{
			"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "dtype": "float32",
			"vocab_size": tinyVocab, "hidden_size": tinyHidden, "intermediate_size": tinyMLP, "hidden_act": "silu",
			"num_hidden_layers": tinyLayers, "num_attention_heads": tinyHeads, "num_key_value_heads": tinyKV,
			"head_dim": tinyHidden / tinyHeads, "max_position_embeddings": 256, "rms_norm_eps": 1e-6,
			"rope_theta": 10000.0, "rope_parameters": map[string]any{"rope_theta": 10000.0, "rope_type": "default"},
			"attention_bias": false, "mlp_bias": false, "attention_dropout": 0.0, "tie_word_embeddings": false,
			"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "use_cache": true, "initializer_range": 0.02,
		},
		"generation_config.json": map[string]any{"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2},
		"tokenizer_config.json": map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
			"eos_token": "</s>", "pad_token": "<pad>", "model_max_length": 128},
		"tokenizer.json": tinyTokenizer(),
	}
	for name, content := range files {
		data, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	weights, err := tinyWeights()
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return err
	}
	return errors.Join(safetensors.Write(f, weights, map[string]string{"format": "pt"}), f.Close())
}

func tinyWeights() ([]tensor.Named, error) {
	random := rand.New(rand.NewPCG(1, 2))
	var out []tensor.Named
	var failed error
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			switch {
			case len(shape) == 1: // a norm's weight
				values[i] = float32(1 + 0.1*random.NormFloat64())
			case name == "lm_head.weight" && i >= tinyTokens*tinyHidden:
				values[i] = 0 // never chosen: of 259 logits around 0 one is above it
			default:
				values[i] = float32(0.08 * random.NormFloat64())
			}
		}
		t, err := tensor.Of(values, shape...)
		failed = errors.Join(failed, err)
		out = append(out, tensor.Named{Name: name, Tensor: t})
	}
	const kv = tinyHidden / tinyHeads * tinyKV
	add("model.embed_tokens.weight", tinyVocab, tinyHidden)
	for i := range tinyLayers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		add(layer+"input_layernorm.weight", tinyHidden)
		add(layer+"self_attn.q_proj.weight", tinyHidden, tinyHidden)
		add(layer+"self_attn.k_proj.weight", kv, tinyHidden)
		add(layer+"self_attn.v_proj.weight", kv, tinyHidden)
		add(layer+"self_attn.o_proj.weight", tinyHidden, tinyHidden)
		add(layer+"post_attention_layernorm.weight", tinyHidden)
		add(layer+"mlp.gate_proj.weight", tinyMLP, tinyHidden)
		add(layer+"mlp.up_proj.weight", tinyMLP, tinyHidden)
		add(layer+"mlp.down_proj.weight", tinyHidden, tinyMLP)
	}
	add("model.norm.weight", tinyHidden)
	add("lm_head.weight", tinyVocab, tinyHidden)
	return out, failed
}

// tinyTokenizer returns a tokenizer.json that makes one token of each byte, in the letters that
// byte-level tokenizers write bytes in.
func tinyTokenizer() map[string]any {
	vocab := map[string]int{}
	var special []map[string]any
	for i, s := range []string{"<s>", "</s>", "<pad>"} {
		vocab[s] = i
		special = append(special,
			map[string]any{"id": i, "content": s, "special": true, "single_word": false, "lstrip": false,
				"rstrip": false, "normalized": false})
	}
	hidden := 0 // bytes that have no letter of their own get those from 256 on
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			vocab[string(rune(b))] = len(vocab)
		} else {
			hidden++
		}
	}
	for i := range hidden {
		vocab[string(rune(256+i))] = len(vocab)
	}
	bytes := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special, "normalizer": nil,
		"pre_tokenizer": bytes, "post_processor": nil, "decoder": bytes,
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
			"vocab": vocab, "merges": []string{}},
	}
}
