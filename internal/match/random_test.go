package match_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// randomRuns puts names and shapes together that real models use, so that all rounds and layouts meet
// in every combination, and a word of any kind.
func randomRuns(seed uint64, word string) (golden, actual []match.Port, opt match.Options) {
	rng := rand.New(rand.NewPCG(seed, 2))
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	label := func() string {
		segs := []string{pick("model", "model", "model.model", "model.bert", "model.language_model", "net", word)}
		if rng.IntN(3) > 0 {
			list := pick("layers", "layers.layers", "encoder.layer", "encoder.layer.layers", "h", "bank.layers", "bank")
			segs = append(segs, list+"."+pick("0", "1", "2"))
		}
		if rng.IntN(3) > 0 {
			segs = append(segs, pick("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.qkv_proj", "mlp.gate_proj",
				"mlp.up_proj", "mlp.gate_up_proj", "norm", "LayerNorm", "layer_norm", "lm_head", "attn", "mlp",
				"dropout", "norm(2)", word))
		}
		return strings.Join(segs, ".")
	}
	shapes := [][]int{nil, {1}, {2}, {10}, {12}, {2, 6}, {1, 6}, {6}, {2, 6, 4}, {12, 4}, {10, 4}, {6, 4}, {1, 6, 4},
		{2, 4}, {1, 4}, {1, 1, 4}, {2, 6, 8}, {12, 8}, {10, 8}, {10, 12}, {2, 6, 12}, {2, 1, 1, 6}, {2, 6, 6, 6},
		{2, 3, 6, 6}, {1, 1, 6, 6}, {0, 4}, {2, 6, 0}, {2, 6, 2, 2}, {10, 2, 2}}
	dtypes := []tensor.DType{tensor.F32, tensor.F32, tensor.F32, tensor.BF16, tensor.I64, tensor.U32, tensor.Bool}
	ports := func(n int) (out []match.Port) {
		for range rng.IntN(n) {
			out = append(out, match.Port{Step: pick("0", "0", "0", "1"), Layer: label(), Seq: rng.IntN(30),
				Port: pick("output", "output", "output_0", "output_1", "output_logits", "output_x", "tap", "input_0",
					"input_0", "input_1", "input_2", "input_hidden_states", "input_input_ids", "input_attention_mask",
					"input_position_ids", "computed_0", "computed_1", "input_1.0"),
				DType: dtypes[rng.IntN(len(dtypes))], Shape: shapes[rng.IntN(len(shapes))]})
		}
		return out
	}
	once := func(ports []match.Port) []match.Port {
		seen := map[string]bool{}
		return slices.DeleteFunc(ports, func(p match.Port) bool {
			k := p.Step + p.Label()
			defer func() { seen[k] = true }()
			return seen[k]
		})
	}
	golden = once(ports(25))
	// The candidate has other names, ports and layouts of most of it, and something of its own.
	rename := strings.NewReplacer(pick("model.model", "model.bert", "-"), pick("model", "model.language_model"),
		"layers.", pick("layers.", "layers.layers."), "layer.", pick("layer.", "layer.layers."),
		"LayerNorm", pick("LayerNorm", "layer_norm"))
	actual = ports(6)
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
		if rng.IntN(6) > 0 {
			actual = append(actual, p)
		}
	}
	some := func(n int) bool { return rng.IntN(n) == 0 }
	opt = match.Options{AllowReshape: some(5), Generating: some(2), GoldenByName: some(7), ActualByName: some(3)}
	if some(4) {
		opt.PadMask = pad
	}
	if some(6) {
		opt.Rules = []match.Rule{{Golden: []string{pick("**.norm", "layers.*.attn", "model", "model-output", word)},
			Candidate: []string{pick("**.LayerNorm", "layer.*.mlp", "model", "model-output", word)}}}
	}
	return golden, once(actual), opt
}

// checkSeed joins two random runs and checks what holds for all: no port is paired twice or lost, every view
// fits, and a second run says the same. It returns how many ports were paired, −1 for an error.
func checkSeed(t testing.TB, seed uint64, word string) int {
	golden, actual, opt := randomRuns(seed, word)
	r, err := match.Runs(golden, actual, opt)
	if err != nil {
		return -1
	}
	check(t, golden, actual, r)
	again, err := match.Runs(golden, actual, opt)
	require.NoError(t, err)
	require.True(t, reflect.DeepEqual(r, again), "the same again")
	return len(r.Pairs)
}

func TestRandomRuns(t *testing.T) {
	joined, refused := 0, 0
	for seed := range uint64(2000) {
		if n := checkSeed(t, seed, "x"); n < 0 {
			refused++
		} else {
			joined += n
		}
	}
	require.Greater(t, joined, 3000, "the words are such that much joins")
	require.Less(t, refused, 1000)
}

func FuzzRuns(f *testing.F) {
	for i, word := range []string{"", ".", "*", "**", "layers", "0", "a(2)", "\xff", "(", "a-output", "model."} {
		f.Add(uint64(i), word)
	}
	f.Fuzz(func(t *testing.T, seed uint64, word string) { checkSeed(t, seed, word) })
}
