package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

const (
	// minSelfCosine is what two right dumpers reach on a right model, in float32, at every layer.
	minSelfCosine = 0.999999
	// minSelfPorts is how many outputs the two engines have in common at least: a block has four.
	minSelfPorts = 4 * tinyLayers
	// selfSteps are a prefill and a decode step.
	selfSteps = 2
)

// selftest runs both dumpers on a tiny model made on the spot, whose two runs must agree. Until
// they do, no comparison means anything.
func selftest(ctx context.Context, stdout, stderr io.Writer) error {
	dir, remove, err := supervise.TempDir("", "parity-selftest-")
	if err != nil {
		return err
	}
	defer remove()
	model := filepath.Join(dir, "model")
	if err := tinyModel(model); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	job := engine.Job{Engine: engine.Torch, Model: engine.Model{Path: model, Task: fixture.TextGeneration}, Local: true,
		Device: engine.CPU, Encoding: "float32",
		Cases: []engine.Case{{Name: "selftest", TokenIDs: [][]int{{72, 101, 108, 108, 111, 44, 32}}, Steps: selfSteps}}}
	golden, err := selfRun(ctx, job, dir, stdout, stderr)
	if err != nil {
		return err
	}
	defer golden.Close()
	if job.Cases[0].Forced, err = golden.Generated(0); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	job.Engine = engine.MAX
	actual, err := selfRun(ctx, job, dir, stdout, stderr)
	if err != nil {
		return err
	}
	defer actual.Close()
	return selfCompare(ctx, golden, actual, stdout)
}

// selfRun runs one engine. Its error says which one it was, and what to do.
func selfRun(ctx context.Context, job engine.Job, dir string, stdout, stderr io.Writer) (*engine.Result, error) {
	job.Out = filepath.Join(dir, job.Engine)
	con := newConsole(stderr, job.Engine)
	logFile, err := engine.LogFile("selftest-" + job.Engine)
	if err != nil {
		return nil, err
	}
	r, err := engine.RunOnDevice(ctx, job, engine.Options{Progress: con.Event, LogFile: logFile}, con.say)
	con.Stop(err == nil)
	if err != nil {
		advice := "the engine does not run a model that it should: install it again, in the versions that parity " +
			"doctor lists"
		var infra *engine.InfraError
		if errors.As(err, &infra) {
			advice = "see parity doctor for what is missing"
		}
		return nil, fmt.Errorf("selftest: %s failed: %w: %s", job.Engine, err, advice)
	}
	fmt.Fprintf(stdout, "selftest: %s recorded %d tensors in %d steps\n", job.Engine, len(r.Runs[0].Entries),
		len(r.Runs[0].Steps()))
	return r, nil
}

// selfCompare judges the two runs.
func selfCompare(ctx context.Context, golden, actual *engine.Result, stdout io.Writer) error {
	c, err := judge.Compare(ctx, []judge.Case{{Name: "selftest", Golden: golden.Runs[0], Actual: actual.Runs[0]}},
		judge.Options{Match: match.Options{Generating: true}})
	if err != nil {
		return fmt.Errorf("selftest: the two dumps could not be compared: %w", err)
	}
	const advice = "a dumper records the wrong thing, or an engine is of a version that this one does not know: " +
		"compare no models before this passes"
	n, least, at := 0, 1.0, "all"
	fed := 0 // of the first inputs, and what the embeddings look up for them: equal bit by bit if the inputs are
	for _, p := range c.Ports {
		if !p.Joined() {
			continue
		}
		where := fmt.Sprintf("%s %s, step %s", p.Layer, p.Port, p.Step)
		if p.Err != nil {
			return fmt.Errorf("selftest: %s: %w", where, p.Err)
		}
		r := p.Base.Result
		if !p.Golden.DType().IsFloat() || p.Judged() && p.Layer == "model.model.embed_tokens" {
			if fed++; r.MaxAbs.Value != 0 || r.BadNonFinite != 0 {
				return fmt.Errorf("selftest: the first inputs differ: %s: the two engines were not given the same "+
					"input: %s", where, advice)
			}
		}
		if !p.Judged() {
			continue
		}
		n++
		switch cosine := r.Cosine(); {
		case !(cosine >= minSelfCosine) || r.BadNonFinite != 0:
			return fmt.Errorf("selftest: %s is the first that differs: cosine %.9f, want %v at least: %s", where,
				cosine, minSelfCosine, advice)
		case cosine < least:
			least, at = cosine, where
		}
	}
	if n < minSelfPorts*selfSteps || fed == 0 {
		return fmt.Errorf("selftest: the two dumps have %d outputs and %d first inputs in common, want %d and 1 at "+
			"least: %s", n, fed, minSelfPorts*selfSteps, advice)
	}
	fmt.Fprintf(stdout,
		"selftest: %d outputs compared, the least cosine is %.9f (%s), want %v; first inputs identical\n"+
			"selftest: ok\n", n, least, at, minSelfCosine)
	return nil
}

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
