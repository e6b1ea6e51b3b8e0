package match_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// TestRandomRuns puts names and shapes together that real models use, so that all rounds and
// layouts meet in every combination. What it checks is what FuzzRuns checks, which seldom gets that
// far.
func TestRandomRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	label := func() string {
		segs := []string{pick("model", "model", "model.model", "model.bert", "model.language_model", "net", "x")}
		if rng.IntN(3) > 0 {
			list := pick("layers", "layers.layers", "encoder.layer", "encoder.layer.layers", "h", "bank.layers", "bank")
			segs = append(segs, list+"."+pick("0", "1", "2"))
		}
		if rng.IntN(3) > 0 {
			segs = append(segs, pick("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.qkv_proj", "mlp.gate_proj",
				"mlp.up_proj", "mlp.gate_up_proj", "norm", "LayerNorm", "layer_norm", "lm_head", "attn", "mlp",
				"dropout", "norm(2)"))
		}
		return strings.Join(segs, ".")
	}
	shapes := [][]int{nil, {1}, {2}, {10}, {12}, {2, 6}, {1, 6}, {6}, {2, 6, 4}, {12, 4}, {10, 4}, {6, 4}, {1, 6, 4},
		{2, 4}, {1, 4}, {1, 1, 4}, {2, 6, 8}, {12, 8}, {10, 8}, {10, 12}, {2, 6, 12}, {2, 1, 1, 6}, {2, 6, 6, 6},
		{2, 3, 6, 6}, {1, 1, 6, 6}, {0, 4}, {2, 6, 0}, {2, 6, 2, 2}, {10, 2, 2}}
	dtypes := []tensor.DType{tensor.F32, tensor.F32, tensor.F32, tensor.BF16, tensor.I64, tensor.U32, tensor.Bool}
	run := func() []match.Port {
		var ports []match.Port
		seen := map[string]bool{}
		for range rng.IntN(25) {
			p := match.Port{Step: pick("0", "0", "0", "1"), Layer: label(), Seq: rng.IntN(30),
				Port: pick("output", "output", "output_0", "output_1", "output_logits", "output_x", "tap", "input_0",
					"input_0", "input_1", "input_2", "input_hidden_states", "input_input_ids", "input_attention_mask",
					"input_position_ids", "computed_0", "computed_1", "input_1.0"),
				DType: dtypes[rng.IntN(len(dtypes))],
				Shape: shapes[rng.IntN(len(shapes))]}
			if k := p.Step + p.Label(); !seen[k] {
				seen[k] = true
				ports = append(ports, p)
			}
		}
		return ports
	}
	// other makes a candidate's run of a golden one: other names, ports and layouts of most of it,
	// and something of its own.
	other := func(golden []match.Port) []match.Port {
		rename := strings.NewReplacer(pick("model.model", "model.bert", "-"), pick("model", "model.language_model"),
			"layers.", pick("layers.", "layers.layers."), "layer.", pick("layer.", "layer.layers."),
			"LayerNorm", pick("LayerNorm", "layer_norm"))
		ports := run()
		ports = ports[:min(len(ports), 5)]
		seen := map[string]bool{}
		for _, p := range ports {
			seen[p.Step+p.Label()] = true
		}
		for _, p := range golden {
			p.Layer = rename.Replace(p.Layer)
			p.Port = strings.NewReplacer("output_0", pick("output", "output_0"),
				"hidden_states", pick("0", "1", "hidden_states"), "output_logits", "output_0").Replace(p.Port)
			if s := p.Shape; len(s) > 1 && rng.IntN(2) == 0 {
				switch {
				case rng.IntN(3) == 0 && len(s) > 2: // last row
					p.Shape = append([]int{s[0]}, s[2:]...)
				case rng.IntN(4) == 0 && s[0] == 2 && s[1] == 6: // no padding
					p.Shape = append([]int{10}, s[2:]...)
				default:
					p.Shape = append([]int{s[0] * s[1]}, s[2:]...)
				}
			}
			if k := p.Step + p.Label(); rng.IntN(6) > 0 && !seen[k] {
				seen[k] = true
				ports = append(ports, p)
			}
		}
		return ports
	}
	joined, refused := 0, 0
	for i := range 2000 {
		golden := run()
		actual := other(golden)
		opt := match.Options{AllowReshape: i%5 == 0, Generating: i%2 == 0, GoldenByName: i%7 == 0,
			ActualByName: i%3 == 0}
		if i%4 == 0 {
			opt.PadMask = pad
		}
		if i%6 == 0 {
			opt.Rules = []match.Rule{{Golden: []string{pick("**.norm", "layers.*.attn", "model", "model-output")},
				Candidate: []string{pick("**.LayerNorm", "layer.*.mlp", "model", "model-output")}}}
		}
		r, err := match.Runs(golden, actual, opt)
		if err != nil {
			refused++
			continue
		}
		joined += len(r.Pairs)
		check(t, golden, actual, r)
		checkViews(t, golden, actual, r)
		match.Order(golden, actual, r)
		again, err := match.Runs(golden, actual, opt)
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(r, again), "the same again")
	}
	require.Greater(t, joined, 3000, "the words are such that much joins")
	require.Less(t, refused, 1000)
}
