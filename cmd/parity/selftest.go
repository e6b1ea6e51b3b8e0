package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

const (
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
	job.Cases[0].Forced, err = golden.Generated(0)
	if err := errors.Join(err, golden.Close()); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	job.Engine = engine.MAX
	actual, err := selfRun(ctx, job, dir, stdout, stderr)
	if err != nil {
		return err
	}
	if err := actual.Close(); err != nil {
		return err
	}
	f := inputFlags{Inputs: report.Inputs{Golden: filepath.Join(dir, engine.Torch), Actual: filepath.Join(dir, engine.MAX)}}
	return f.judge(ctx, stderr, "selftest", func(r *report.Report, _ []judge.Case) error { return selfVerdict(r, stdout) })
}

// selfRun runs one engine. Its error says which one it was, and what to do.
func selfRun(ctx context.Context, job engine.Job, dir string, stdout, stderr io.Writer) (*engine.Result, error) {
	job.Out = filepath.Join(dir, job.Engine)
	logFile, err := engine.LogFile("selftest-" + job.Engine)
	if err != nil {
		return nil, err
	}
	r, err := runEngine(ctx, job, logFile, stderr)
	if err != nil {
		advice := "the engine does not run a model that it should: install it again, in the versions that parity " +
			"doctor lists"
		if engine.Class(err) == engine.ClassInfra {
			advice = "see parity doctor for what is missing"
		}
		return nil, fmt.Errorf("selftest: %s failed: %w: %s", job.Engine, err, advice)
	}
	fmt.Fprintf(stdout, "selftest: %s recorded %d tensors in %d steps\n", job.Engine, len(r.Runs[0].Entries),
		len(r.Runs[0].Steps()))
	return r, nil
}

// selfVerdict wants that enough was compared, and passes.
func selfVerdict(r *report.Report, stdout io.Writer) error {
	compared := 0
	if r.Coverage != nil {
		compared = r.Coverage.Compared
	}
	const advice = "a dumper records the wrong thing, or an engine is of a version that this one does not know: " +
		"compare no models before this passes"
	switch least := minSelfPorts * selfSteps; {
	case r.Verdict != report.Pass:
		return fmt.Errorf("selftest: %s: %s", report.Headline(r), advice)
	case compared < least:
		return fmt.Errorf("selftest: the two dumps have %d outputs in common, want %d at least: %s", compared, least, advice)
	}
	fmt.Fprintf(stdout, "selftest: %s\nselftest: ok\n", report.Headline(r))
	return nil
}

// The tiny model: a Llama with random weights, of a size at which a run takes no time, and a tokenizer that makes one
// token of each byte. The last rows of its vocabulary have no token.
const (
	tinyVocab, tinyHidden, tinyMLP, tinyLayers, tinyHeads, tinyKV = 320, 64, 128, 4, 4, 2 // as in tiny/config.json
	tinyTokens                                                    = 3 + 256               // <s>, </s>, <pad>, and one for each byte
)

//go:embed tiny
var tiny embed.FS

// tinyModel writes the model's folder: config, tokenizer and weights. It is the same at each call.
func tinyModel(dir string) error {
	files, err := tiny.ReadDir("tiny")
	err = errors.Join(err, os.MkdirAll(dir, 0o755))
	for _, f := range files {
		data, failed := tiny.ReadFile("tiny/" + f.Name())
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(dir, f.Name()), data, 0o644))
	}
	if err != nil {
		return err
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
