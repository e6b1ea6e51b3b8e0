package judge_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// decayed is a sequence of numbers that tell something, alike in all tests.
func decayed(n int, phase float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(math.Sin(float64(i*i)*0.7+phase) * 2)
	}
	return out
}

func mapped(x []float32, f func(float64) float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(f(float64(v)))
	}
	return out
}

// A decode step is laid out with those before it: its attention has all keys, and rotates its own
// token by a position of its own.
func TestStepsAsOnePass(t *testing.T) {
	const tokens, width = 5, 8 // one head; the last token is a step of its own
	q, k, v := decayed(tokens*width, 0.3), decayed(tokens*width, 1.1), decayed(tokens*width, 2.3)
	attention := func(position func(token int) float64) []float32 {
		a := op.Attention{Sequences: 1, Tokens: tokens, Heads: 1, KV: 1, Dim: width, Scale: 1 / math.Sqrt(width), Mask: op.Causal()}
		at := make([]float64, tokens)
		for i := range at {
			at[i] = position(i)
		}
		a.Rope.Q = op.Rotation{Freqs: op.Frequencies(10000, width), Step: 1, Size: 1, At: at}
		a.Rope.K = a.Rope.Q
		wide := func(x []float32) []float64 {
			out := make([]float64, len(x))
			for i := range x {
				out[i] = float64(x[i])
			}
			return out
		}
		return mapped32(a.Of(wide(q), wide(k), wide(v), op.Sequence(tokens)))
	}
	model := func(position func(token int) float64) *dump.Run {
		context := attention(position)
		var entries []dump.Entry
		for step, span := range [][2]int{{0, tokens - 1}, {tokens - 1, tokens}} {
			ids, err := tensor.Of([]int64{7, 3, 9, 4, 1}[span[0]:span[1]], 1, span[1]-span[0])
			require.NoError(t, err)
			entries = append(entries, dump.Entry{Step: []string{"0", "1"}[step], Layer: "m.embed_tokens", Port: "input_0", Tensor: ids})
			for _, p := range []struct {
				layer, port string
				x           []float32
			}{{"q_proj", "output", q}, {"k_proj", "output", k}, {"v_proj", "output", v}, {"o_proj", "input_0", context}} {
				part := p.x[span[0]*width : span[1]*width]
				entries = append(entries, dump.Entry{Step: []string{"0", "1"}[step], Layer: "m.layers.0.self_attn." + p.layer, Port: p.port,
					Tensor: of(t, part, 1, span[1]-span[0], width)})
			}
			entries = append(entries, dump.Entry{Step: []string{"0", "1"}[step], Layer: "m.layers.0.self_attn.o_proj", Port: "output",
				Tensor: of(t, mapped(context[span[0]*width:span[1]*width], func(x float64) float64 { return 3 * x }), 1, span[1]-span[0], width)})
		}
		return dump.New("torch", dump.Info{Engine: "torch", Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
	}
	place := func(token int) float64 { return float64(token) }
	late := func(token int) float64 {
		if token == tokens-1 {
			return float64(token + 1)
		}
		return float64(token)
	}
	k1 := judge.Case{Name: "short", Golden: model(place), Actual: model(late)}
	c, err := judge.Compare(t.Context(), []judge.Case{k1}, judge.Options{Diagnosis: judge.Diagnosis{
		Evidence: func() (checkpoint.Weights, checkpoint.Config, error) {
			return nil, checkpoint.Config{"num_attention_heads": 1.0, "rope_theta": 10000.0}, nil
		}}})
	require.NoError(t, err)
	r := c.Report("x", true)
	require.NotEmpty(t, r.Causes)
	assert.Equal(t, "rope/offset", r.Causes[0].ID, r.Causes[0].Text)
	assert.Contains(t, r.Causes[0].Text, "off by +1")
}

func mapped32(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}
