package match_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/toy"
)

// What is joined, by rules too, and in which layout, what is left and what is said of it, is in testdata/rules.want.
func TestRules(t *testing.T) {
	axis := 1
	rule := func(r match.Rule) match.Options { return match.Options{Rules: []match.Rule{r}} }
	const (
		norms      = "m.a.LayerNorm 5 > 5\nm.a.layer_norm 5 > 5"
		gapGolden  = "model.layers.*.a 1x5 > 1x5\nmodel.layers.*.mixer 1x5 > 1x5\nmodel.layers.*.z 1x5 > 1x5\nmodel.tail 1x5 > 1x5\nmodel 1x5 > 1x5"
		gapActual  = "model.layers.*.a 1x5 > 1x5\nmodel.layers.*.blender 1x5 > 1x5\nmodel.layers.*.z 1x5 > 1x5\nmodel 1x5 > 1x5"
		masked     = "m attention_mask=i64:2x6,1x3 > 1x3"
		cut, heads = "m.a 1x6x4 > 1x6x4\nm 5 > 5", "m.a 1x2x3x4 > 1x2x3x4\nm 5 > 5"
	)
	tests := []struct {
		name           string
		golden, actual string
		opt            match.Options
		reason         string
	}{
		{"rename", "transformer.wte i64:1x5 > 1x5x16", "model.embed_tokens i64:5 > 5x16",
			rule(match.Rule{Golden: []string{"transformer.wte"}, Candidate: []string{"embed_tokens"}}), "by the end of a label"},
		{"rename folded", "m.LayerNorm 5 > 5", "m.last 5 > 5", rule(match.Rule{Golden: []string{"layer_norm"}, Candidate: []string{"last"}}),
			"by the end of a label in normal form"},
		{"rename blocks", "m.h.*.attn 1x5x16 > 1x5x16", "m.layers.layers.*.attention 5x16 > 5x16",
			rule(match.Rule{Golden: []string{"h.*.attn"}, Candidate: []string{"layers.*.attention"}}), "wildcards keep their blocks"},
		{"rename all", "m.old.a 1x5 > 1x5\nm.old.b.c 1x5 > 1x5\nm.old.drop 1x5 > 1x5", "m.new.x.a 1x5 > 1x5\nm.new.x.b.c 1x5 > 1x5",
			rule(match.Rule{Golden: []string{"old.**"}, Candidate: []string{"new.x.**"}}), "what only one side has may be left"},
		{"split", "a.q 1x5x4 > 1x5x4\na.k 1x5x4 > 1x5x2", "a.mixed 5x4 > 5x6",
			rule(match.Rule{Golden: []string{"a.q", "a.k"}, Candidate: []string{"a.mixed"}}), "along the last axis"},
		{"split axis", "a.q 4 > 4x5\na.k 4 > 2x5", "a.mixed 4 > 1x6x5",
			rule(match.Rule{Golden: []string{"a.q", "a.k"}, Candidate: []string{"a.mixed"}, Axis: &axis}), "along another axis"},
		{"split order", "a.q 1x5x4 > 1x5x4\na.k 1x5x4 > 1x5x2", "a.mixed 5x4 > 5x6",
			rule(match.Rule{Golden: []string{"a.k", "a.q"}, Candidate: []string{"a.mixed"}}), "in the order of the rule"},
		{"join", "a.mixed 5x4 > 5x6", "a.x.q 5x4 > 5x4\na.x.k 5x4 > 5x2",
			rule(match.Rule{Golden: []string{"a.mixed"}, Candidate: []string{"x.q", "x.k"}}), "side by side"},
		{"transpose", "conv 1x5x4 > 1x5x4", "conv 1x5x4 > 1x4x5",
			rule(match.Rule{Golden: []string{"conv"}, Candidate: []string{"conv"}, Transpose: []int{0, 2, 1}}), "inputs lie as they did"},
		{"transpose in", "conv 1x5x4 > 1x5x4", "conv 1x4x5 > 1x4x5",
			rule(match.Rule{Golden: []string{"conv"}, Candidate: []string{"conv"}, Transpose: []int{0, 2, 1}}), "inputs too if they do not fit otherwise"},
		{"reshape", "head 5x4 > 5x2x2", "head 5x4 > 5x4",
			rule(match.Rule{Golden: []string{"head"}, Candidate: []string{"head"}, Reshape: []int{5, -1, 2}}), "what is left is found"},
		{"last row", "norm 1x5x4 > 1x5x4\nblock 1x5x4 > 1x5x4", "norm 5x4 > 1x4\nblock 5x4 > 5x4",
			rule(match.Rule{Golden: []string{"norm"}, Candidate: []string{"norm"}, Rows: "last"}), "in the middle of a model that does not generate"},
		{"ports", "m 1x5 > a=1x4,b=1x4\n", "m 1x5 > a=1x4\nm.pooler 1x9 > a=1x4,b=1x4",
			rule(match.Rule{Golden: []string{"m-output_b"}, Candidate: []string{"m.pooler-output_b"}}), "one port, the others as ever"},
		{"misfit", "conv 1x5x4 > 1x5x4", "conv 1x5x4 > 1x4x6",
			rule(match.Rule{Golden: []string{"conv"}, Candidate: []string{"conv"}, Transpose: []int{0, 2, 1}}), "a rule does not bend shapes"},
		{"partial", "model.a 1x5 > 1x5\nmodel.b 1x5 > 1x5", "net.x 1x5 > 1x5", match.Options{Partial: true, Rules: []match.Rule{
			{Golden: []string{"model.a"}, Candidate: []string{"net.x"}}, {Golden: []string{"model.b"}, Candidate: []string{"net.y"}}}},
			"a part of a run need not hold all that the rules name: what is not obeyed is said"},
		{"shapes", "m.a.LayerNorm 5 > 5\nm.a.layer_norm 7 > 7", "m.a.layernorm 7 > 7", match.Options{}, "shapes settle what names do not"},
		{"equal names", norms, norms, match.Options{}, "they go before normal forms"},
		{"ignored", "model.layers.*.dropout 5 > 5\nmodel.layers.*.attn 5 > 0=5,1=9\nmodel 5 > 5", "model.layers.*.attn 5 > 0=5,1=9\nmodel 5 > 5\nextra 3 > 3",
			match.Options{Ignore: []match.Ignore{{Pattern: "**.dropout", Reason: "inference"}, {Pattern: "layers.*.attn-output_1", Reason: "weights"},
				{Pattern: "extra", Reason: "not ours"}, {Pattern: "model.layers.0.dropout", Reason: "again"}}}, "layers and ports of each side; the first reason counts"},
		{"gaps", gapGolden, gapActual, match.Options{}, "what has no partner, between what has"},
		{"gaps closed", gapGolden, gapActual, match.Options{Rules: []match.Rule{{Golden: []string{"model.layers.*.mixer"}, Candidate: []string{"model.layers.*.blender"}}},
			Ignore: []match.Ignore{{Pattern: "model.tail", Reason: "the candidate has no such layer"}}}, "what is proposed works"},
		{"gaps at the ends", "m.p 5 > 5\nm.q 5 > 5\nm.r 5 > 5\nm.a 5 > 5\nm.t 5 > 5", "m.a 5 > 5\nm.u 5 > 5\nm.v 5 > 5", match.Options{}, "before and behind, of more layers than are named"},
		{"order", "m.a 5 > 5\nm.b 5 > 5\nm.c 5 > 5\nm 5 > 5", "m.b 5 > 5\nm.extra 5 > 5\nm.a 5 > 5\nm.c 5 > 5\nm 5 > 5", match.Options{},
			"of two that are exchanged one moved"},
		{"other axes", cut, heads, match.Options{}, "a reshape has to be said"},
		{"other axes, allowed", cut, heads, match.Options{AllowReshape: true}, "or allowed"},
		{"a batch goes on", "layers.0 2x6x4 > 2x6x4\nlm_head 2x6x4 > 2x6x9\nstep 1\nlayers.0 2x1x4 > 2x1x4\nlm_head 2x1x4 > 2x1x9",
			"layers.0 10x4 > 10x4\nlm_head 2x4 > 2x9\nstep 1\nlayers.0 2x4 > 2x4\nlm_head 2x4 > 2x9", match.Options{PadMask: pad},
			"a token of each sequence in a decode step says nothing of the rows of the prefill"},
		{"both roots", "model.bert i64:1x5 > 1x5x4\nmodel i64:1x5 > 1x5x9", "model.bert i64:5 > 5x4\nmodel i64:5 > 5x7", match.Options{},
			"the inner model fits: the shape of the outer one is a finding"},
		{"no padding", "m 1x2x4 > 1x2x4", "m 1x2x4 > 1x2x4", match.Options{PadMask: [][]bool{{true, true}}}, "is no mask"},
		{"a mask", masked, masked, match.Options{PadMask: pad}, "is not cut by itself: its padding is what it says"},
	}
	var all strings.Builder
	for _, tt := range tests {
		golden, actual := invent(t, 2, tt.golden), invent(t, 2, tt.actual)
		r, err := match.Runs(golden, actual, tt.opt)
		require.NoError(t, err, tt.name)
		check(t, golden, actual, r)
		checkViews(t, golden, actual, r)
		fmt.Fprintf(&all, "=== %s: %s\n%s", tt.name, tt.reason, show(golden, actual, r))
	}
	toy.Kept(t, "rules.want", all.String())
}

func TestErrors(t *testing.T) {
	golden := "model.encoder.layer.*.attention 1x5x4 > 1x5x4\nmodel.encoder.layer.*.mlp 1x5x4 > 1x5x4\nmodel 1x5x4 > 1x5x4"
	names := func(golden, candidate []string) match.Options {
		return match.Options{Rules: []match.Rule{{Golden: golden, Candidate: candidate}}}
	}
	axis := 0
	tests := []struct {
		name           string
		golden, actual string
		opt            match.Options
		want           []string
		reason         string
	}{
		{"no golden", golden, golden, names([]string{"layer.0.atention"}, []string{"layer.0.mlp"}),
			[]string{"no layer \"layer.0.atention\"", "did you mean \"model.encoder.layer.0.attention\"?"}, "a slip"},
		{"no candidate", golden, golden, names([]string{"layer.0.attention"}, []string{"layer.0.mlpp"}),
			[]string{"the candidate run has no layer", "model.encoder.layer.0.mlp"}, "a slip"},
		{"two", golden, golden, names([]string{"attention"}, []string{"layer.0.mlp"}),
			[]string{"layer.0.attention", "layer.1.attention", "write more of it"}, "the end of two labels"},
		{"twice", golden, golden,
			match.Options{Rules: []match.Rule{{Golden: []string{"layer.0.mlp"}, Candidate: []string{"layer.0.mlp"}},
				{Golden: []string{"layer.0.mlp"}, Candidate: []string{"layer.1.mlp"}}}}, []string{"in two rules"},
			"contradiction"},
		{"wild", golden, golden, names([]string{"layer.*.attn"}, []string{"layer.*.mlp"}),
			[]string{"no layer \"layer.*.attn\""}, "a pattern that matches nothing"},
		{"empty", golden, golden, names(nil, nil), []string{"golden names no layer"}, "nothing said"},
		{"many", golden, golden, names([]string{"a", "b"}, []string{"c", "d"}),
			[]string{"several layers on both sides"}, "neither join nor split"},
		{"port", golden, golden, names([]string{"model-output_7"}, []string{"model-output"}),
			[]string{"has no port \"output_7\"", "input_0, output"}, "a port that is not there"},
		{"one port", golden, golden, names([]string{"model-output"}, []string{"model"}),
			[]string{"name a port on both sides"}, "half a port"},
		{"axis", golden, golden,
			match.Options{Rules: []match.Rule{{Golden: []string{"model"}, Candidate: []string{"model"}, Axis: &axis}}},
			[]string{"axis is for a join or split"}, "needless"},
		{"wildcards", golden, golden, names([]string{"model"}, []string{"layer.*.mlp"}), []string{"more wildcards"},
			"nothing to put in"},
		{"rows", golden, golden, match.Options{Rules: []match.Rule{{Golden: []string{"model"},
			Candidate: []string{"model"}, Rows: "first"}}}, []string{"\"first\" is unknown"}, "only last is known"},
		{"transpose", golden, golden, match.Options{Rules: []match.Rule{{Golden: []string{"model"},
			Candidate: []string{"model"}, Transpose: []int{0, 0}}}}, []string{"not an order of 2 axes"},
			"an axis twice"},
		{"reshape", golden, golden, match.Options{Rules: []match.Rule{{Golden: []string{"model"},
			Candidate: []string{"model"}, Reshape: []int{-1, -1}}}}, []string{"-1 once"}, "two unknowns"},
		{"no candidate named", golden, golden, names([]string{"model"}, []string{""}), []string{"candidate names no layer"}, "nothing said"},
		{"not UTF-8", golden, golden, names([]string{"model"}, []string{"\xff"}), []string{"is not UTF-8"}, "fixture.yaml is"},
		{"port of a join", golden, golden, names([]string{"model-output"}, []string{"a", "b"}), []string{"names a port"}, "a join is of layers"},
		{"join laid out", golden, golden, match.Options{Rules: []match.Rule{{Golden: []string{"a", "b"}, Candidate: []string{"model"},
			Reshape: []int{1}}}}, []string{"no transpose, reshape or rows"}, "a split is cut"},
		{"reshape to less", golden, golden, match.Options{Rules: []match.Rule{{Golden: []string{"model"}, Candidate: []string{"model"},
			Reshape: []int{-2}}}}, []string{"reshape takes sizes"}, "no size"},
		{"ignore twice wrong", golden, golden, match.Options{Ignore: []match.Ignore{{Pattern: "[", Reason: "x"}}}, []string{"ignore \"[\""}, "no pattern"},
		{"ignore", golden, golden, match.Options{Ignore: []match.Ignore{{Pattern: "layer.*.atention", Reason: "x"}}},
			[]string{"matches no layer"}, "a slip"},
		{"no reason", golden, golden, match.Options{Ignore: []match.Ignore{{Pattern: "**.mlp"}}}, []string{"no reason"}, "a reason is required"},
		{"ambiguous", "m.a.LayerNorm 5 > 5\nm.a.layer_norm 5 > 5", "m.a.layernorm 5 > 5", match.Options{},
			[]string{"m.a.LayerNorm", "m.a.layer_norm", "m.a.layernorm", "equally well"},
			"two names of one normal form"},
		{"encoder or decoder", "model.encoder.layers.*.fc 5 > 5\nmodel.decoder.layers.*.fc 5 > 5",
			"model.layers.*.fc 5 > 5", match.Options{},
			[]string{"model.encoder.layers.0.fc", "model.decoder.layers.0.fc"}, "the candidate may be either"},
		{"behind a learned prefix", "model.x.bank.*.a 5 > 5\nmodel.x.bank.layers.0.a 5 > 5",
			"model.bank.*.a 5 > 5",
			match.Options{}, []string{"model.x.bank.0.a", "model.x.bank.layers.0.a", "equally well"},
			"a list with and without its name"},
		{"twice recorded", "m 5 > 5\nm 5 > 5", "m 5 > 5", match.Options{}, []string{"golden has m-input_0 twice"}, "one port twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := match.Runs(invent(t, 3, tt.golden), invent(t, 3, tt.actual), tt.opt)
			require.Error(t, err, tt.reason)
			for _, w := range tt.want {
				assert.ErrorContains(t, err, w, tt.reason)
			}
			assert.LessOrEqual(t, strings.Count(err.Error(), "ambiguous names"), 1, "what is ambiguous in all blocks is said of one")
		})
	}
}

func TestExpand(t *testing.T) {
	r := match.Rule{Golden: []string{"h.*.q", "h.*.k"}, Candidate: []string{"layers.*.qk"}}
	golden, candidate, ok := r.Expand("model.h.3.q")
	assert.True(t, ok)
	assert.Equal(t, [][]string{{"h.3.q", "h.3.k"}, {"layers.3.qk"}}, [][]string{golden, candidate})
	_, _, ok = r.Expand("model.h.3.v")
	assert.False(t, ok, "another layer")
	assert.Equal(t, "h.*.q, h.*.k = layers.*.qk", r.String())
}
