package report_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

func TestVerification(t *testing.T) {
	r := toy.DeepReport(2, 1)
	r.Layers[3].Injected.MaxAbs = 0 // all the others are over zero
	for _, c := range []struct {
		name string
		mode report.Mode
	}{{"verification-standard.txt", report.Standard}, {"verification-injected.txt", report.Injected}} {
		var b bytes.Buffer
		require.NoError(t, r.Verification(c.mode).Text(&b, report.TextOptions{Width: 120}))
		toy.Kept(t, c.name, b.String())
	}
	var b bytes.Buffer
	require.NoError(t, r.Modes().Text(&b, report.TextOptions{Width: 120}))
	toy.Kept(t, "modes.txt", b.String())
	for _, r := range []*report.Report{broken(), hostile(20), passing()} {
		for _, mode := range []report.Mode{report.Standard, report.Injected} {
			b.Reset()
			require.NoError(t, r.Verification(mode).Text(&b, report.TextOptions{Width: 120}))
			require.NoError(t, r.Modes().Text(&b, report.TextOptions{Width: 120}))
			assert.NotContains(t, b.String(), "\x1b", "names do not reach a terminal")
		}
	}
	assert.Contains(t, b.String(), "There was no injected run")
}

func TestStatistics(t *testing.T) {
	r := &report.Report{Schema: 1, Verdict: report.Fail}
	for i, mse := range []float64{4, 0, 1, math.Inf(1)} {
		l := row(strings.Repeat("x", i+1)+".mlp", i, report.StatusPass, metrics(1e-6, 0))
		l.Standard.MSE = report.Float(mse)
		r.Layers = append(r.Layers, l)
	}
	r.Layers[2].Standard.BadNonFinite = 1 // its finite elements have an MSE of 1: that is not what it is
	s := report.StatisticsOf(report.Depth(r), report.Standard, "")
	assert.Equal(t,
		report.Statistics{Layers: 4, N: 4, Zero: 1, Infinite: 2, Min: 0, Max: math.Inf(1), Mean: math.Inf(1),
			Median: math.Inf(1)}, s, "infinite ones are counted, not dropped")
	r.Layers = r.Layers[:2]
	s = report.StatisticsOf(report.Depth(r), report.Standard, report.MLP)
	assert.Equal(t, report.Statistics{Layers: 2, N: 2, Zero: 1, Min: 0, Max: 4, Mean: 2, Median: 2}, s)
	assert.Zero(t, report.StatisticsOf(report.Depth(r), report.Injected, "").N)
	assert.Zero(t, report.StatisticsOf(report.Depth(r), report.Standard, report.Norm).N)
}

// The worst of all cases stands for a layer; inputs appear by what an injected run had computed for
// them.
func TestDepth(t *testing.T) {
	first, second := row("a", 0, report.StatusPass, metrics(1e-6, 0)), row("a", 0, report.StatusFail, metrics(1e-2, 0))
	second.Case = "other"
	in := row("b", 1, report.StatusFail, metrics(1e-2, 0))
	in.Port, in.Kind = "input_0", label.RoleInput.String()
	out := row("b", 2, report.StatusFail, metrics(1e-2, 0))
	r := &report.Report{Schema: 1, Verdict: report.Fail, Layers: []report.Layer{first, second, in, out},
		FirstDivergence: &report.Divergence{Layer: "b", Port: "input_0", Case: "hello", Step: "0"}}
	p := report.Depth(r)
	require.Len(t, p, 2)
	assert.Equal(t, "other", p[0].Worst(report.Standard).Case)
	assert.Nil(t, p[0].Worst(report.Injected))
	assert.Equal(t, "input_0", p[1].First.Port, "the input makes no point: the next one is marked")

	r.Layers[2].Injected = metrics(1e-2, 0)
	p = report.Depth(r)
	require.Len(t, p, 3)
	assert.True(t, p[1].Computed)
	assert.Nil(t, p[1].Worst(report.Standard))
	assert.NotNil(t, p[1].First)
	assert.Nil(t, p[2].First)
}

func TestComponentOf(t *testing.T) {
	for _, c := range []struct {
		layer  string
		want   report.Component
		reason string
	}{
		{"model.layers.0.self_attn", report.Attention, "llama"},
		{"model.layers.0.self_attn.q_proj", report.Attention, "one letter and proj"},
		{"model.layers.0.self_attn.o_proj(2)", report.Attention, "a repeated call"},
		{"model.layers.0.self_attn.q_norm", report.Norm, "the element nearest to the end decides"},
		{"model.layers.0.input_layernorm", report.Norm, "in one word"},
		{"model.layers.0.post_attention_layernorm", report.Norm, "norms are named after what they stand after"},
		{"model.layers.0.mlp.gate_proj", report.MLP, "llama"},
		{"model.layers.0.mlp.act_fn", report.MLP, "activation"},
		{"model.layers.0.block_sparse_moe.experts.3.w1", report.MLP, "experts"},
		{"model.layers.0", report.Other, "a block is all of it"},
		{"model.rotary_emb", report.Attention, "not an embedding of tokens"},
		{"model.embed_tokens", report.Embedding, "llama"},
		{"embeddings.word_embeddings", report.Embedding, "BERT"},
		{"embeddings.LayerNorm", report.Norm, "BERT"},
		{"encoder.layer.3.attention.output.dense", report.Attention, "BERT"},
		{"encoder.layer.3.attention.self.query", report.Attention, "BERT"},
		{"encoder.layer.3.intermediate.dense", report.MLP, "BERT"},
		{"encoder.layer.3.intermediate.intermediate_act_fn", report.MLP, "BERT"},
		{"encoder.layer.3.output.dense", report.MLP, "BERT names the second half output"},
		{"encoder.layer.3.output.LayerNorm", report.Norm, "BERT"},
		{"pooler.dense", report.Head, "BERT"},
		{"transformer.h.0.ln_1", report.Norm, "GPT-2"},
		{"transformer.h.0.mlp.c_fc", report.MLP, "GPT-2"},
		{"transformer.wte", report.Embedding, "GPT-2"},
		{"lm_head", report.Head, "a word of it"},
		{"model.overhead", report.Other, "not a word"},
		{"layers.1.feed_forward.w2", report.MLP, "two words that mean one"},
		{"block.GELUActivation", report.MLP, "camel case"},
		{"", report.Other, "the root"},
	} {
		assert.Equal(t, c.want, report.ComponentOf(c.layer), "%s: %s", c.layer, c.reason)
	}
}
