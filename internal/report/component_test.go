package report_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/report"
)

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
		{"model.layers.0.post_attention_layernorm", report.Norm, "norms are named after what they stand behind"},
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
