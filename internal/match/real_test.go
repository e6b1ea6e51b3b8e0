package match_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/toy"
)

// Listings of real dumps. What Runs makes of each pair is in testdata/<name>.want, checked by eye;
// -update renews it.
var real = []struct {
	name           string
	golden, actual string
	opt            match.Options
	minPairs       int
	reason         string
}{
	{"minilm", "minilm_short_torch", "minilm_short_max", match.Options{}, 190,
		"BERT, MAX against Hugging Face: LayerList, layer_norm, batch axis kept"},
	{"minilm_injected", "minilm_short_torch", "minilm_short_max_injected", match.Options{}, 288,
		"the same with computed ports, which come first"},
	{"tinyllama", "tinyllama_torch", "tinyllama_max", match.Options{}, 180,
		"decoder with fused qkv, ragged rows, last row at the end, three steps"},
	{"tinyllama_injected", "tinyllama_torch", "tinyllama_max_injected", match.Options{}, 60, "one step only"},
	{"flat", "flat_torch", "flat_max", match.Options{ActualByName: true}, 60,
		"a folder of Modular's own tools: a sampler, no recorded order"},
	{"layer_comparison", "layer_comparison_torch", "layer_comparison_max", match.Options{}, 30, "Modular's example"},
	{"layer_comparison_injected", "layer_comparison_torch", "layer_comparison_max_injected", match.Options{}, 43,
		"the same with computed ports"},
	{"zoo_bert_same", "zoo_act_quick_gelu_ref", "zoo_act_quick_gelu_ref", match.Options{PadMask: pad}, 129,
		"equal names, two sequences, padding"},
	{"zoo_bert_same_injected", "zoo_act_quick_gelu_ref", "zoo_act_quick_gelu_cand_injected",
		match.Options{PadMask: pad}, 55, "isolated: outputs only"},
	{"zoo_bert_max", "zoo_act_quick_gelu_ref", "zoo_mask_ignored_cand", match.Options{PadMask: pad}, 119,
		"MAX's names, padded batch"},
	{"zoo_bert_max_injected", "zoo_act_quick_gelu_ref", "zoo_mask_ignored_cand_injected", match.Options{PadMask: pad},
		55, "isolated"},
	{"zoo_bert_sparse", "zoo_act_quick_gelu_ref", "zoo_sparse_mask_cand", match.Options{PadMask: pad}, 15,
		"the candidate recorded few layers"},
	{"zoo_bert_sparse_injected", "zoo_act_quick_gelu_ref", "zoo_sparse_mask_cand_injected", match.Options{PadMask: pad},
		6, "isolated and few"},
	{"zoo_dit", "zoo_clean_bf16_ref", "zoo_clean_bf16_cand", match.Options{}, 101,
		"diffusion transformer with fused qkv on both sides"},
	{"zoo_dit_injected", "zoo_clean_bf16_ref", "zoo_clean_bf16_cand_injected", match.Options{}, 48, "isolated"},
	{"zoo_llama_same", "zoo_clean_f16_ref", "zoo_clean_f16_cand", match.Options{}, 103,
		"model.model and model on both sides"},
	{"zoo_llama_same_injected", "zoo_clean_f16_ref", "zoo_clean_f16_cand_injected", match.Options{}, 46, "isolated"},
	{"zoo_llama_fused", "zoo_clean_fused_qkv_ref", "zoo_clean_fused_qkv_cand", match.Options{}, 80,
		"fused qkv, ragged, all rows of logits"},
	{"zoo_llama_fused_injected", "zoo_clean_fused_qkv_ref", "zoo_clean_fused_qkv_cand_injected", match.Options{}, 34,
		"isolated"},
	{"zoo_llama_max", "zoo_clean_fused_qkv_ref", "zoo_clean_max_cand", match.Options{}, 86,
		"MAX's names, q, k and v apart"},
	{"zoo_llama_max_injected", "zoo_clean_fused_qkv_ref", "zoo_clean_max_cand_injected", match.Options{}, 43,
		"isolated"},
}

var pad = [][]bool{{true, true, true, true, true, true}, {true, true, true, true, false, false}}

func TestRealDumps(t *testing.T) {
	for _, tt := range real {
		t.Run(tt.name, func(t *testing.T) {
			golden, actual := read(t, tt.golden), read(t, tt.actual)
			r, err := match.Runs(golden, actual, tt.opt)
			require.NoError(t, err, tt.reason)
			check(t, golden, actual, r)
			checkViews(t, golden, actual, r)
			assert.GreaterOrEqual(t, len(r.Pairs), tt.minPairs, tt.reason)
			for _, p := range r.Pairs {
				assert.Empty(t, p.Problem, golden[p.Golden[0]].Label())
				for _, a := range p.Actual {
					want, got := golden[p.Golden[0]].Layer, doubled.Replace(actual[a].Layer)
					assert.Equal(t, numbers(want), numbers(got), "block numbers")
					assert.Equal(t, golden[p.Golden[0]].Step, actual[a].Step)
				}
			}
			toy.Kept(t, tt.name+".want", show(golden, actual, r))
		})
	}
}

var doubled = strings.NewReplacer("layers.layers.", "layers.", "layer.layers.", "layer.")
