package weights_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
)

// random is a weight of a shape.
func random(t *testing.T, rng *rand.Rand, shape ...int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	x, err := tensor.Of(v, shape...)
	require.NoError(t, err)
	return x
}

// Names alone tell which weights are one: no value agrees but that of an anchor.
func TestNames(t *testing.T) {
	const layer, blk = "model.layers.0.", "blk.0."
	for _, c := range []struct {
		reason string
		names  [][2]string // of the reference and the candidate
	}{
		{"llama.cpp", [][2]string{{layer + "post_attention_layernorm.weight", blk + "ffn_norm.weight"}, {layer + "input_layernorm.weight", blk + "attn_norm.weight"},
			{"model.embed_tokens.weight", "token_embd.weight"}, {"lm_head.weight", "output.weight"}, {"model.norm.weight", "output_norm.weight"},
			{layer + "self_attn.o_proj.weight", blk + "attn_output.weight"}, {layer + "self_attn.q_proj.bias", blk + "attn_q.bias"}}},
		{"norms before and after each part", [][2]string{{layer + "post_attention_layernorm.weight", blk + "post_attention_norm.weight"},
			{layer + "pre_feedforward_layernorm.weight", blk + "ffn_norm.weight"}, {layer + "post_feedforward_layernorm.weight", blk + "post_ffw_norm.weight"}}},
		{"two lists of layers", [][2]string{{"model.encoder.layers.0.fc1.weight", "enc.layers.0.fc1.weight"}, {"model.decoder.layers.0.fc1.weight", "dec.layers.0.fc1.weight"}}},
		{"a part of the model", [][2]string{{"model.encoder.layers.0.fc1.weight", "model.encoder.layers.0.fc1.weight"}, {"model.decoder.layers.0.fc1.weight", ""}}},
		{"a decoder alone", [][2]string{{"model.decoder.layers.0.self_attn.q_proj.weight", blk + "attn_q.weight"}}},
		{"one list of layers", [][2]string{{"bert.encoder.layer.0.output.dense.weight", "h.0.mlp.c_proj.weight"}}},
		{"experts", [][2]string{{layer + "mlp.experts.1.gate_proj.weight", layer + "block_sparse_moe.experts.1.w1.weight"},
			{layer + "mlp.experts.0.gate_proj.weight", layer + "block_sparse_moe.experts.0.w1.weight"}, {layer + "mlp.gate.weight", blk + "ffn_gate_inp.weight"}}},
		{"experts of gpt-oss", [][2]string{{layer + "mlp.experts.gate_up_proj_bias", layer + "mlp.experts.gate_up_proj.bias"},
			{layer + "mlp.experts.gate_up_proj", layer + "mlp.experts.gate_up_proj.weight"}, {layer + "mlp.experts.down_proj", blk + "ffn_down_exps.weight"}}},
		{"words that mean something else within a layer", [][2]string{{layer + "norm.weight", "h.0.norm.weight"}, {"model.norm.weight", "transformer.ln_f.weight"}}},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		anchor := tensor.Named{Name: "anchor.weight", Tensor: random(t, rng, 8, 8)}
		ref, cand := []tensor.Named{anchor}, []tensor.Named{anchor}
		want := map[string]string{anchor.Name: anchor.Name}
		for _, n := range c.names {
			ref = append(ref, tensor.Named{Name: n[0], Tensor: random(t, rng, 6, 10)})
			if n[1] != "" {
				cand = append(cand, tensor.Named{Name: n[1], Tensor: random(t, rng, 6, 10)})
			}
			want[n[0]] = n[1]
		}
		got := map[string]string{}
		r, err := weights.Compare(t.Context(), weights.Of("ref", ref, nil), weights.Of("cand", cand, nil), weights.Options{})
		require.NoError(t, err, c.reason)
		for _, w := range r.Weights {
			got[w.Reference] = w.Candidate
		}
		assert.Equal(t, want, got, c.reason)
	}
}

// rounded is a weight in a type of fewer bits.
func rounded(t *testing.T, x *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	t.Helper()
	var data []byte
	for i := range x.Len() {
		v := float32(x.At(i))
		if d == tensor.F16 {
			b := smallfloat.PutF16(smallfloat.RoundF16(v))
			data = append(data, byte(b), byte(b>>8))
			continue
		}
		for code, y := range smallfloat.F8().E4M3FN {
			if y == smallfloat.RoundE4M3FN(v) {
				data = append(data, byte(code))
				break
			}
		}
	}
	y, err := tensor.New(d, x.Shape(), data)
	require.NoError(t, err)
	return y
}

// The steps of single weights, and a fault after each.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	of := func(x *tensor.Tensor, err error) *tensor.Tensor {
		require.NoError(t, err)
		return x
	}
	const layer = "model.layers.0."
	conv, matrix := random(t, rng, 4, 3, 2, 2), random(t, rng, 12, 8)
	decay := random(t, rng, 16)
	mapped := func(x *tensor.Tensor, f func(v []float32, _ int)) *tensor.Tensor {
		return checkpoint.Map(x, tensor.F32, x.Shape(), f).Copy()
	}
	exp := mapped(decay, func(v []float32, _ int) {
		for i, x := range v {
			v[i] = -float32(math.Exp(float64(x)))
		}
	})
	stack, parts := random(t, rng, 2, 6, 8), map[string]*tensor.Tensor{}
	for e := range 2 {
		parts[fmt.Sprintf("%smlp.experts.%d.down_proj.weight", layer, e)] = of(of(stack.Slice(0, e, e+1)).Reshape(6, 8))
	}
	whole := map[string]*tensor.Tensor{layer + "mlp.experts.down_proj": stack}
	one := func(name string, x *tensor.Tensor) map[string]*tensor.Tensor {
		return map[string]*tensor.Tensor{name: x}
	}
	for _, c := range []struct {
		ref, cand map[string]*tensor.Tensor
		steps     string
	}{
		{one("conv.weight", conv), one("conv.weight", of(conv.Transpose(0, 2, 3, 1)).Copy()), "channels last"},
		{one("conv.weight", of(conv.Transpose(0, 2, 3, 1)).Copy()), one("conv.weight", conv), "channels first"},
		{one("fc.weight", matrix), one("fc.weight", rounded(t, matrix, tensor.F16)), "cast"},
		{one("fc.weight", matrix), one("fc.weight", rounded(t, matrix, tensor.F8E4M3FN)), "cast"},
		{one("fc.weight", rounded(t, matrix, tensor.F16)), one("fc.weight", of(rounded(t, matrix, tensor.F16).Transpose()).Copy()), "transposed"},
		{one(layer+"mixer.A_log", decay), one(layer+"mixer.A_log", exp), "−exp"},
		{one(layer+"mixer.A_log", exp), one(layer+"mixer.A_log", decay), "log −"},
		{whole, parts, "unstacked"},
		{parts, whole, "stacked"},
	} {
		compared := func(cand map[string]*tensor.Tensor) *weights.Report {
			named := func(m map[string]*tensor.Tensor) (out []tensor.Named) {
				for name, x := range m {
					out = append(out, tensor.Named{Name: name, Tensor: x})
				}
				return out
			}
			r, err := weights.Compare(t.Context(), weights.Of("ref", named(c.ref), nil), weights.Of("cand", named(cand), nil), weights.Options{})
			require.NoError(t, err, c.steps)
			return r
		}
		r := compared(c.cand)
		require.True(t, r.Pass, "%s: %+v", c.steps, r.Weights)
		for _, w := range r.Weights {
			assert.Contains(t, strings.Join(w.Steps, ", "), c.steps)
		}
		damaged := map[string]*tensor.Tensor{}
		for name, x := range c.cand {
			damaged[name] = mapped(x, func(v []float32, from int) {
				for i := range v {
					if from+i == 9 {
						v[i] -= 0.7
					}
				}
			})
		}
		assert.False(t, compared(damaged).Pass, "%s: an element is another", c.steps)
	}
}

// What an engine loaded is compared with what the reference's loaded, or the checkpoint.
func TestLoaded(t *testing.T) {
	ref := llama()
	run := func(m model) *dump.Run {
		return &dump.Run{Path: m.write(t, tensor.F32), Info: dump.Info{Weights: []string{"model.safetensors"}}}
	}
	tensors := checkpoint.Weights{}
	for _, x := range ref.named(t, tensor.F32) {
		tensors[x.Name] = x.Tensor
	}
	evidence := func() (checkpoint.Weights, checkpoint.Config, error) { return tensors, nil, nil }
	none := func() (checkpoint.Weights, checkpoint.Config, error) { return nil, nil, nil }
	wrong, other := llama(), llama()
	wrong[query].v[3]++
	delete(other, final)
	other["own.weight"] = wrong[gate0]
	hashed := &dump.Run{Path: t.TempDir(), Info: dump.Info{Weights: []string{"weights.json"}}}
	list, err := json.Marshal(map[string]any{"weights": []weights.Hash{hashOf(t, final, tensors[final])}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(hashed.Path, "weights.json"), list, 0o600))
	silent := &dump.Run{}
	for _, c := range []struct {
		goldens, candidates []*dump.Run
		evidence            func() (checkpoint.Weights, checkpoint.Config, error)
		n                   int
		wrong, ignored      []string
		err                 string
		reason              string
	}{
		{nil, []*dump.Run{silent}, evidence, 0, nil, nil, "", "nothing is known of the candidate"},
		{nil, []*dump.Run{silent, run(ref)}, evidence, 30, nil, nil, "", "the checkpoint"},
		{nil, []*dump.Run{run(wrong)}, evidence, 30, []string{query}, nil, "", "a wrong one"},
		{[]*dump.Run{silent, run(wrong)}, []*dump.Run{run(wrong)}, evidence, 30, nil, nil, "", "the reference's engine loaded the same"},
		{[]*dump.Run{run(wrong)}, []*dump.Run{run(ref)}, nil, 30, []string{query}, nil, "", "and no checkpoint is known"},
		{nil, []*dump.Run{run(other)}, evidence, 31, nil, []string{"the engine loaded none that is called so", "no weight of the reference is called so"}, "",
			"what one side has alone fails nothing"},
		{[]*dump.Run{hashed}, []*dump.Run{hashed}, evidence, 1, nil, nil, "", "hashes of the candidate; those of the golden are no weights"},
		{nil, []*dump.Run{run(ref)}, none, 0, nil, nil, "no weights of the reference are known", "nothing to compare with"},
		{nil, []*dump.Run{run(ref)}, nil, 0, nil, nil, "no weights of the reference are known", "nor this"},
		{nil, []*dump.Run{{Path: "none", Info: dump.Info{Weights: []string{"x.safetensors"}}}}, evidence, 0, nil, nil, "the weights that the candidate loaded (x.safetensors)", "no file"},
	} {
		got, err := weights.Loaded(context.Background(), c.goldens, c.candidates, c.evidence)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.reason)
			continue
		}
		require.NoError(t, err, c.reason)
		assert.Len(t, got, c.n, c.reason)
		var wrong, ignored []string
		for _, w := range got {
			if !w.Good() {
				wrong = append(wrong, w.Reference)
			}
			if w.Status == weights.Ignored {
				ignored = append(ignored, w.Detail)
			}
		}
		assert.Equal(t, c.wrong, wrong, c.reason)
		assert.ElementsMatch(t, c.ignored, ignored, c.reason)
	}
}
