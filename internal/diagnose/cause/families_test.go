package cause_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/cause"
	_ "github.com/goparity/goparity/internal/updateflag"
	"github.com/goparity/goparity/tensor"
)

// picked takes columns of rows of n.
func picked(x values, n int, columns ...int) values {
	var out values
	for r := 0; r < len(x); r += n {
		for _, c := range columns {
			out = append(out, x[r+c])
		}
	}
	return out
}

// counted is from, from+step, … n times.
func counted(n, from, step int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i*step
	}
	return out
}

// timesWeight is x·w for rows of n and w [n, n].
func timesWeight(x, w values, n int) values {
	out := make(values, len(x))
	for r := 0; r < len(x); r += n {
		for i := range n {
			for c := range n {
				out[r+c] += x[r+i] * w[i*n+c]
			}
		}
	}
	return out
}

func transposedWeight(w values, n int) values {
	return w.from(func(i int) int { return i%n*n + i/n })
}

// cosines are cos(position·frequency), each frequency twice, for positions 0, 1, ….
func cosines(rows int, freqs []float64) values {
	var out values
	for r := range rows {
		for range 2 {
			for _, f := range freqs {
				out = append(out, math.Cos(float64(r)*f))
			}
		}
	}
	return out
}

// Mistakes of particular model families: fused projections, Conv1D, q and k norms, soft caps,
// scaled rotary angles, positions.
func TestFamilies(t *testing.T) {
	const n, w = 12, 32
	shape, wide, ids := []int{1, n, w}, []int{1, n, 2 * w}, []int{1, n}
	x, both := leafRandom(1, n*w), leafRandom(2, n*2*w)
	gate, up := picked(both, 2*w, counted(w, 0, 1)...), picked(both, 2*w, counted(w, w, 1)...)
	positions, left := make(values, n), make(values, n)
	for i := range positions {
		positions[i], left[i] = float64(i), float64(max(i-4, 0))
	}
	square := leafRandom(3, w*w)
	product := timesWeight(x, square, w)
	fused := leafRandom(4, n*(w+w))
	parted := append(counted(w, 0, 1), append(counted(w/2, w+w/2, 1), counted(w/2, w, 1)...)...)
	capped := x.each(func(x float64) float64 { return 2 * math.Tanh(x/2) })

	plainFreqs, scaledFreqs := make([]float64, w/2), make([]float64, w/2)
	for i := range plainFreqs {
		f := math.Pow(500000, -2*float64(i)/w)
		s := min(max((32*f/(2*math.Pi)-1)/3, 0), 1)
		plainFreqs[i], scaledFreqs[i] = f, (1-s)*f/8+s*f
	}
	llama3 := map[string]any{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32.0}

	weights := checkpoint.Weights{"h.0.attn.c_proj.weight": square.tensor(t, w, w)}
	silus := func(v values) values { return v.each(silu) }
	for _, c := range []struct {
		name, kind, id string
		proven         bool
		scene          *diagnose.Scene
		weights        checkpoint.Weights
		config         checkpoint.Config
		reason         string
	}{
		{"gate is up", "between", "linear/gate-up", true, runOf(t, "between",
			made{"m.mlp.gate_up_proj", "output", wide, both, noisyOf(both), false},
			made{"m.mlp.activation_fn", "input_0", shape, gate, noisyOf(up), false}), nil, nil, "the halves of a fused projection are exchanged where they are read"},
		{"alternate columns", "between", "linear/gate-up", true, runOf(t, "between",
			made{"m.mlp.gate_up_proj", "output", wide, both, noisyOf(both), false},
			made{"m.mlp.activation_fn", "input_0", shape, gate, noisyOf(picked(both, 2*w, counted(w, 0, 2)...)), false}), nil, nil, "gate and up alternate"},
		{"up not multiplied", "between", "linear/gate-up", true, runOf(t, "between",
			made{"m.mlp.gate_up_proj", "output", wide, both, noisyOf(both), false},
			made{"m.mlp.activation_fn", "output", shape, silus(gate), noisyOf(silus(gate)), false},
			made{"m.mlp.down_proj", "input_0", shape, values(silus(gate)).where(func(int, int) bool { return true }, func(i int, x float64) float64 { return x * up[i] }),
				noisyOf(silus(gate)), false}), nil, nil, "the product of a half and an activation is known"},
		{"activation of up", "local", "linear/gate-up", true, runOf(t, "local",
			made{"m.mlp.gate_proj", "output", shape, gate, noisyOf(gate), false},
			made{"m.mlp.up_proj", "output", shape, up, noisyOf(up), false},
			made{"m.mlp.act_fn", "input_0", shape, gate, nil, false},
			made{"m.mlp.act_fn", "output", shape, silus(gate), noisyOf(silus(up)), false}), nil, nil, "the candidate recorded no inputs"},
		{"parts of qkv", "local", "linear/qkv-order", true, runOf(t, "local",
			made{"m.self_attn.qkv_proj", "output", wide, fused, noisyOf(picked(fused, 2*w, parted...)), false}), nil, nil, "no config says how wide they are"},
		{"Conv1D", "local", "linear/transposed", true, runOf(t, "local",
			made{"h.0.attn.c_proj", "input_0", shape, x, noisyOf(x), false},
			made{"h.0.attn.c_proj", "output", shape, product, noisyOf(timesWeight(x, transposedWeight(square, w), w)), false}), weights, nil,
			"a square weight does not say by its shape how it lies"},
		{"Conv1D, second call", "local", "linear/transposed", true, runOf(t, "local",
			made{"h.0.attn.c_proj(2)", "input_0", shape, x, noisyOf(x), false},
			made{"h.0.attn.c_proj(2)", "output", shape, product, noisyOf(timesWeight(x, transposedWeight(square, w), w)), false}), weights, nil,
			"a layer has its weights in every call"},
		{"q norm left out", "local", "norm/missing", true, runOf(t, "local",
			made{"m.self_attn.q_norm", "input_0", shape, x, noisyOf(x), false},
			made{"m.self_attn.q_norm", "output", shape, rmsNorm(x, w), noisyOf(x), false}), nil, nil, "there is no other place for it"},
		{"logits without their cap", "between", "config/final_logit_softcapping", true, runOf(t, "between",
			made{"m.lm_head", "output", shape, x, noisyOf(x), false},
			made{"m", "output_logits", shape, capped, noisyOf(x), false}), nil, checkpoint.Config{"final_logit_softcapping": 2.0}, "Gemma 2"},
		{"angles without scaling", "local", "config/rope_scaling", true, runOf(t, "local",
			made{"m.rotary_emb", "input_0", ids, positions, positions, true},
			made{"m.rotary_emb", "output_0", shape, cosines(n, scaledFreqs), noisyOf(cosines(n, plainFreqs)), false}), nil,
			checkpoint.Config{"rope_theta": 500000.0, "rope_scaling": llama3}, "Llama 3.1; the theta is right"},
		{"another theta with scaling", "local", "rope/theta", true, runOf(t, "local",
			made{"m.rotary_emb", "input_0", ids, positions, positions, true},
			made{"m.rotary_emb", "output_0", shape, cosines(n, scaledFreqs), noisyOf(cosines(n, powers(10000, w))), false}), nil,
			checkpoint.Config{"rope_theta": 500000.0, "rope_parameters": llama3}, "not the scaling alone"},
		{"RoBERTa's positions", "between", "embedding/position", true, runOf(t, "between",
			made{"m.position_embeddings", "input_0", ids, positions.each(func(x float64) float64 { return x + 2 }), positions, true}), nil, nil,
			"they begin behind the padding's"},
		{"padding on the left", "input", "embedding/position", false, runOf(t, "input", made{"m.wpe", "input_0", ids, left, positions, true}), nil, nil, "these are no tokens"},
		{"positions of rotary", "input", "rope/offset", false, runOf(t, "input", made{"m", "input_position_ids", ids, left, positions, true}), nil, nil, "by the port's name"},
		{"types", "input", "embedding/type", false, runOf(t, "input",
			made{"m", "input_token_type_ids", ids, positions.each(func(x float64) float64 { return math.Mod(x, 2) }), make(values, n), true}), nil, nil, "by the port's name"},
		{"types not embedded", "local", "embedding/type", true, runOf(t, "local",
			made{"m.token_type_embeddings", "output", shape, x, make(values, len(x)), false}), nil, nil, "zeros say more here than value/constant"},
		{"conditioning without activation", "between", "activation/missing", true, runOf(t, "between",
			made{"m.t_embedder", "output", shape, x, noisyOf(x), false},
			made{"m.blocks.0.ada", "input_0", shape, silus(x), noisyOf(silus(x)), false},
			made{"m.blocks.1.ada", "input_0", shape, silus(x), noisyOf(x), false}), nil, nil, "and not another source of a residual"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.scene.Weights, c.scene.Config = c.weights, c.config
			causes := diagnose.Diagnose(context.Background(), c.scene, cause.For(c.kind))
			require.NotEmpty(t, causes, c.reason)
			assert.Equal(t, c.id, causes[0].ID, "%s: %s", c.reason, causes[0].String())
			if c.proven {
				assert.True(t, causes[0].Proven, "%s: %s", c.reason, causes[0].String())
			}
		})
	}
}

// powers are theta^(−2i/n).
func powers(theta float64, n int) []float64 {
	out := make([]float64, n/2)
	for i := range out {
		out[i] = math.Pow(theta, -2*float64(i)/float64(n))
	}
	return out
}

// A fused projection of odd width, or with another one in the candidate, has no halves and does no
// harm.
func TestFusedGateOfOddWidth(t *testing.T) {
	out, err := tensor.Of(make([]float32, 15), 3, 5)
	require.NoError(t, err)
	run := &diagnose.Run{Ports: []*diagnose.Port{
		{Case: "a", Step: "0", Layer: "m.gate_up_proj", Port: "output", Golden: out, Actual: out},
		{Case: "a", Step: "0", Layer: "m.act", Port: "output", Seq: 1, Golden: out, Actual: out},
	}}
	s := &diagnose.Scene{Run: run, Kind: "local", Case: "a", Step: "0", Layer: "m.act", Target: run.Ports[1]}
	for _, h := range cause.For(s.Kind) {
		assert.NotPanics(t, func() { h.Predict(s) })
	}
}
