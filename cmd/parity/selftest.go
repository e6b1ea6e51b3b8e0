package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// minSelfPorts is how many outputs the two engines have in common at least: a block has four, in a prefill and a decode step.
const minSelfPorts = 4 * tinyLayers * 2

// selftest runs both dumpers on a tiny model made on the spot, whose two runs must agree. Until
// they do, no comparison means anything.
func selftest(cmd *cobra.Command) error {
	dir, remove, err := supervise.TempDir("", "parity-selftest-")
	if err != nil {
		return err
	}
	defer remove()
	model, golden, actual := filepath.Join(dir, "model"), filepath.Join(dir, engine.Torch), filepath.Join(dir, engine.MAX)
	if err := tinyModel(model); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	for _, args := range [][]string{
		{engine.Torch, "--token-ids", "72,101,108,108,111,44,32", "--num-steps", "2", "-o", golden},
		{engine.MAX, "--follow", golden, "-o", actual},
	} {
		if code := run(ctx, append([]string{"run", "--model", model, "--engine"}, args...), stdout, stderr); code != exitPass {
			return fmt.Errorf("selftest: %s failed, see above: parity doctor lists what is missing, and the versions that work", args[0])
		}
	}
	f := inputFlags{Inputs: report.Inputs{Golden: golden, Actual: actual}}
	r, _, err := f.judge(ctx, stderr, "selftest")
	if err != nil {
		return err
	}
	return selfVerdict(r, stdout)
}

// selfVerdict wants that enough was compared, and passes.
func selfVerdict(r *report.Report, stdout io.Writer) error {
	const advice = "a dumper records the wrong thing, or an engine is of a version that this one does not know: " +
		"compare no models before this passes"
	switch {
	case r.Verdict != report.Pass:
		return fmt.Errorf("selftest: %s: %s", report.Headline(r), advice)
	case r.Coverage == nil || r.Coverage.Compared < minSelfPorts:
		return fmt.Errorf("selftest: the two dumps have less than %d outputs in common: %s", minSelfPorts, advice)
	}
	_, err := fmt.Fprintf(stdout, "selftest: %s\nselftest: ok\n", report.Headline(r))
	return err
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
	files, err := fs.Sub(tiny, "tiny")
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	weights, failed := tinyWeights()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "model.safetensors"), func(w io.Writer) error {
		return safetensors.Write(w, weights, map[string]string{"format": "pt"})
	})
}

func tinyWeights() (out []tensor.Named, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	add := func(name string, rows, columns int) {
		values := make([]float32, rows*columns)
		shape := []int{rows, columns}
		scale, mean := 0.08, 0.0
		if rows == 1 { // a norm's
			shape, scale, mean = shape[1:], 0.1, 1
		}
		for i := range values {
			values[i] = float32(mean + scale*random.NormFloat64())
		}
		if name == "lm_head" {
			clear(values[tinyTokens*tinyHidden:]) // never chosen: of 259 logits around 0 one is above it
		}
		t, failed := tensor.Of(values, shape...)
		err = errors.Join(err, failed)
		out = append(out, tensor.Named{Name: name + ".weight", Tensor: t})
	}
	const kv = tinyHidden / tinyHeads * tinyKV
	add("model.embed_tokens", tinyVocab, tinyHidden)
	for i := range tinyLayers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		add(layer+"input_layernorm", 1, tinyHidden)
		add(layer+"self_attn.q_proj", tinyHidden, tinyHidden)
		add(layer+"self_attn.k_proj", kv, tinyHidden)
		add(layer+"self_attn.v_proj", kv, tinyHidden)
		add(layer+"self_attn.o_proj", tinyHidden, tinyHidden)
		add(layer+"post_attention_layernorm", 1, tinyHidden)
		add(layer+"mlp.gate_proj", tinyMLP, tinyHidden)
		add(layer+"mlp.up_proj", tinyMLP, tinyHidden)
		add(layer+"mlp.down_proj", tinyHidden, tinyMLP)
	}
	add("model.norm", 1, tinyHidden)
	add("lm_head", tinyVocab, tinyHidden)
	return out, err
}
