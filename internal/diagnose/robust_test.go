package diagnose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// No hypothesis panics on a tensor of any shape and content, and none proves anything of numbers
// that have nothing to do with each other.
func TestHypothesesOnAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 43))
	shapes := [][]int{{}, {0}, {1}, {7}, {1, 1}, {2, 0, 4}, {3, 5}, {1, 9, 16}, {2, 4, 16}, {2, 4, 3, 8}, {1, 1, 64}, {2, 3, 2, 2, 4}}
	layers := []string{"m", "m.layers.1.self_attn", "m.layers.1.self_attn.q_proj", "m.layers.1.mlp.act_fn", "m.layers.1.input_layernorm", "m.embed_tokens",
		"m.embeddings.position_embeddings", "m.embeddings.token_type_embeddings", "m.rotary_emb", "m.lm_head", "m.blocks.1.attn", "m.t_embedder"}
	made := func(shape []int, dtype tensor.DType) *tensor.Tensor {
		n, err := tensor.NumElems(shape)
		require.NoError(t, err)
		if dtype == tensor.I64 {
			x := make([]int64, n)
			for i := range x {
				x[i] = r.Int64N(9) - 1
			}
			return toy.Of(t, x, shape...)
		}
		x := make([]float32, n)
		odd := r.IntN(4) == 0
		for i := range x {
			x[i] = float32(r.NormFloat64())
			if odd && r.IntN(5) == 0 {
				x[i] = []float32{0, float32(math.NaN()), float32(math.Inf(1)), 3e38, 1e-40}[r.IntN(5)]
			}
		}
		return toy.Of(t, x, shape...)
	}
	var all strings.Builder
	for i := range 2000 {
		run := &diagnose.Run{Config: checkpoint.Config{"num_attention_heads": float64(r.IntN(5)), "hidden_size": 16.0, "rope_theta": 1e4}, Weights: checkpoint.Weights{}}
		target := r.IntN(8)
		shape := shapes[r.IntN(len(shapes))]
		for seq := range 8 {
			s, dtype := shape, tensor.F32
			if r.IntN(3) == 0 {
				s = shapes[r.IntN(len(shapes))]
			}
			if r.IntN(6) == 0 {
				dtype = tensor.I64
			}
			p := &diagnose.Port{Case: "a", Step: "0", Layer: layers[r.IntN(len(layers))], Port: []string{"input_0", "output", "output_1", "tap"}[r.IntN(4)], Seq: seq,
				Golden: made(s, dtype), Floor: leafFloor, Agrees: seq != target}
			switch r.IntN(5) {
			case 0: // the candidate recorded nothing
			case 1:
				p.Actual = p.Golden
			case 2:
				p.Actual = made(shapes[r.IntN(len(shapes))], tensor.F32)
			default:
				p.Actual = made(s, dtype)
			}
			if rows := p.Golden.Len() / max(p.Golden.RowLen(), 1); r.IntN(4) == 0 {
				p.PadRows = make([]bool, rows)
				for k := range p.PadRows {
					p.PadRows[k] = r.IntN(3) == 0
				}
			}
			if r.IntN(3) == 0 && len(s) > 0 {
				run.Weights[p.Layer+".weight"] = made([]int{r.IntN(20), s[len(s)-1]}, tensor.F32)
			}
			run.Ports = append(run.Ports, p)
		}
		kind := []string{"local", "between", "input", "capture", "drift", "interaction", "weights", ""}[r.IntN(8)]
		at := run.Ports[target]
		s := &diagnose.Scene{Run: run, Kind: kind, Case: "a", Step: "0", Layer: at.Layer, Target: at,
			Failed: func(err error) { assert.NoError(t, err, fmt.Sprintf("scene %d", i)) }}
		for _, s.Kind = range []string{kind, "local"} {
			causes := diagnose.Diagnose(t.Context(), s)
			if i%8 == 0 && len(causes) > 0 {
				said(&all, fmt.Sprintf("scene %d: %s %s-%s", i, s.Kind, at.Layer, at.Port), causes)
			}
			for _, c := range causes {
				small := at.Golden.Len() < 64
				assert.False(t, c.Proven && !small && at.Golden.DType().IsFloat() && s.Kind != "input" && s.Kind != "capture", "scene %d: %s", i, c.Text)
			}
		}
	}
	sameAsFile(t, "anything.txt", &all)

	// A scene without a target has nothing to say.
	s := &diagnose.Scene{Run: &diagnose.Run{}, Kind: "local", Failed: func(err error) { assert.NoError(t, err) }}
	assert.Empty(t, diagnose.Diagnose(t.Context(), s))
}
