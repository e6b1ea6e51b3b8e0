package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/toy"
)

const (
	llamaTorch = `
model.model.embed_tokens i64:1x9 > 1x9x64
model.model.rotary_emb 1x9x64,position_ids=i64:1x9 > 0=1x9x16,1=1x9x16
model.model.layers.*.input_layernorm 1x9x64 > 1x9x64
model.model.layers.*.self_attn.q_proj 1x9x64 > 1x9x64
model.model.layers.*.self_attn.k_proj 1x9x64 > 1x9x32
model.model.layers.*.self_attn.v_proj 1x9x64 > 1x9x32
model.model.layers.*.self_attn.o_proj 1x9x64 > 1x9x64
model.model.layers.*.self_attn hidden_states=1x9x64,attention_mask=1x1x9x9,position_ids=i64:1x9,position_embeddings.0=1x9x16,position_embeddings.1=1x9x16 > 0=1x9x64,1=1x4x9x9
model.model.layers.*.post_attention_layernorm 1x9x64 > 1x9x64
model.model.layers.*.mlp.gate_proj 1x9x64 > 1x9x128
model.model.layers.*.mlp.act_fn 1x9x128 > 1x9x128
model.model.layers.*.mlp.up_proj 1x9x64 > 1x9x128
model.model.layers.*.mlp.down_proj 1x9x128 > 1x9x64
model.model.layers.*.mlp 1x9x64 > 1x9x64
model.model.layers.* 1x9x64,attention_mask=1x1x9x9,position_ids=i64:1x9,position_embeddings.0=1x9x16,position_embeddings.1=1x9x16 > 1x9x64
model.model.norm 1x9x64 > 1x9x64
model.model input_ids=i64:1x9,attention_mask=i64:1x9 > last_hidden_state=1x9x64
model.lm_head 1x9x64 > 1x9x320
model input_ids=i64:1x9,attention_mask=i64:1x9 > logits=1x9x320`

	llamaMAX = `
model.embed_tokens i64:9 > 9x64
model.layers.layers.*.input_layernorm 9x64 > 9x64
model.layers.layers.*.self_attn.qkv_proj 9x64 > 9x128
model.layers.layers.*.self_attn.o_proj 9x64 > 9x64
model.layers.layers.*.self_attn 0=u32:-,1=9x64,3=256x16,4=u32:2 > 9x64
model.layers.layers.*.post_attention_layernorm 9x64 > 9x64
model.layers.layers.*.mlp.down_proj 9x128 > 9x64
model.layers.layers.*.mlp 9x64 > 9x64
model.layers.layers.* 0=u32:-,1=9x64,3=256x16,4=u32:2 > 9x64
model.norm 1x64 > 1x64
model.lm_head 1x64 > 1x320
model 0=i64:9,2=i64:1,3=u32:2 > 0=1x320`

	bertBody = `embeddings.word_embeddings i64:2x6 > 2x6x64
P.embeddings.LayerNorm 2x6x64 > 2x6x64
P.embeddings input_ids=i64:2x6,position_ids=i64:2x6,token_type_ids=i64:2x6 > 2x6x64
P.encoder.layer.*.attention.self.query 2x6x64 > 2x6x64
P.encoder.layer.*.attention.self.key 2x6x64 > 2x6x64
P.encoder.layer.*.attention.self.value 2x6x64 > 2x6x64
P.encoder.layer.*.attention.self 2x6x64,attention_mask=bool:2x1x6x6 > 0=2x6x64,1=2x4x6x6
P.encoder.layer.*.output.dense 2x6x96 > 2x6x64
P.encoder.layer.*.output.LayerNorm 2x6x64 > 2x6x64
P.encoder.layer.* 2x6x64 > 0=2x6x64
P.encoder 2x6x64 > last_hidden_state=2x6x64`
)

const distilbert = `
model.distilbert.embeddings.word_embeddings i64:1x7 > 1x7x64
model.distilbert.embeddings i64:1x7 > 1x7x64
model.distilbert.transformer.layer.* 1x7x64 > 1x7x64
model.distilbert.transformer 1x7x64 > 1x7x64
model.distilbert i64:1x7 > 1x7x64
model.classifier 1x64 > 1x2
model i64:1x7 > 1x2`

var swap = strings.NewReplacer

func bertTorch(prefix string) string { return prefix + "." + swap("P.", prefix+".").Replace(bertBody) }

const bertMAX = `
model.embeddings.word_embeddings i64:2x6 > 2x6x64
model.embeddings.layer_norm 2x6x64 > 2x6x64
model.embeddings i64:2x6,i64:2x6 > 2x6x64
model.encoder.layer.layers.*.attention.self.query 2x6x64 > 2x6x64
model.encoder.layer.layers.*.attention.self.key 2x6x64 > 2x6x64
model.encoder.layer.layers.*.attention.self.value 2x6x64 > 2x6x64
model.encoder.layer.layers.*.attention.self 2x6x64,2x1x1x6 > 2x6x64
model.encoder.layer.layers.*.output.dense 2x6x96 > 2x6x64
model.encoder.layer.layers.*.output.layer_norm 2x6x64 > 2x6x64
model.encoder.layer.layers.* 2x6x64 > 2x6x64
model.encoder 2x6x64 > 2x6x64
model i64:2x6,2x6 > 2x6x64`

// What is joined and in which layout, what is left and what is said of it, is in testdata/runs.want.
func TestRuns(t *testing.T) {
	ragged := swap("i64:9", "i64:10", "9x", "10x").Replace(llamaMAX)
	two := swap("model.model.", "model.model.", "1x9", "2x6", "9x9", "6x6", "1x4x", "2x4x", "1x1x", "2x1x").Replace(llamaTorch)
	axis := 1
	rule := func(r match.Rule) match.Options { return match.Options{Rules: []match.Rule{r}} }
	const (
		attention  = "layers.0.attn > 1x5x8,key_cache=%s,value_cache=1x5x4x16"
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
		{name: "smollm", golden: llamaTorch, actual: llamaMAX, reason: "an LLM"},
		{name: "gemma3", golden: swap("model.model", "model.model.language_model").Replace(llamaTorch) + `
model.model.vision_tower.layers.*.norm 1x4x48 > 1x4x48
model.model.vision_tower.norm 1x4x48 > 1x4x48`, actual: llamaMAX,
			reason: "the text model inside a multimodal one"},
		{name: "one_token", golden: swap("1x9", "1x1", "9x9", "1x9").Replace(llamaTorch),
			actual: swap("i64:9", "i64:1", "9x", "1x").Replace(llamaMAX),
			reason: "a decode step: ids, number of logits and a mask of one token look alike"},
		{name: "padded_ragged", golden: two, actual: swap("u32:2", "u32:3", "i64:10", "i64:10", "i64:1",
			"i64:2", "norm 1x", "norm 2x", "lm_head 1x", "lm_head 2x", "> 1x", "> 2x", "0=1x", "0=2x").Replace(ragged),
			opt:    match.Options{PadMask: pad},
			reason: "two sequences in MAX without their padding, the last token of each at the end"},
		{name: "bert_prefix", golden: bertTorch("model.bert") + "\n" +
			"model.bert input_ids=i64:2x6,attention_mask=i64:2x6,token_type_ids=i64:2x6 > last_hidden_state=2x6x64,pooler_output=2x64\nmodel.classifier 2x64 > 2x3\nmodel input_ids=i64:2x6 > logits=2x3",
			actual: bertMAX, opt: match.Options{PadMask: pad},
			reason: "the candidate is the model inside of the classifier; its second ids are positions or types"},
		{name: "crossed", golden: "m.router 6x4 > 0=6x2,1=i64:6x2\nm 5 > 5", actual: "m.router 1x6x4 > 0=u32:1x6x2,1=1x6x2\nm 5 > 5",
			reason: "shares and indices of experts, and indices and shares"},
		{name: "pooled", golden: bertTorch("model") + "\nmodel input_ids=i64:2x6 > last_hidden_state=2x6x64,pooler_output=2x64",
			actual: strings.TrimSuffix(bertMAX, "2x6x64") + "2x64",
			reason: "a mean is not a tanh of the first token"},
		{name: "gpt2", golden: `
model.transformer.wte i64:1x5 > 1x5x16
model.transformer.wpe i64:1x5 > 1x5x16
model.transformer.h.*.ln_1 1x5x16 > 1x5x16
model.transformer.h.*.attn.c_attn 1x5x16 > 1x5x48
model.transformer.h.*.attn.c_proj 1x5x16 > 1x5x16
model.transformer.h.*.attn 1x5x16 > 0=1x5x16
model.transformer.h.*.mlp.c_fc 1x5x16 > 1x5x64
model.transformer.h.* 1x5x16 > 1x5x16
model.transformer.ln_f 1x5x16 > 1x5x16
model.transformer input_ids=i64:1x5 > last_hidden_state=1x5x16
model.lm_head 1x5x16 > 1x5x50
model input_ids=i64:1x5 > logits=1x5x50`, actual: `
model.wte i64:5 > 5x16
model.wpe i64:5 > 5x16
model.h.layers.*.ln_1 5x16 > 5x16
model.h.layers.*.attn.q_proj 5x16 > 5x16
model.h.layers.*.attn.k_proj 5x16 > 5x16
model.h.layers.*.attn.v_proj 5x16 > 5x16
model.h.layers.*.attn.c_proj 5x16 > 5x16
model.h.layers.*.attn 5x16 > 5x16
model.h.layers.*.mlp.c_fc 5x16 > 5x64
model.h.layers.* 5x16 > 5x16
model.ln_f 1x16 > 1x16
model.lm_head 1x16 > 1x50
model i64:5 > 1x50`, reason: "fused in the reference, apart in the candidate"},
		{name: "bloom", golden: "model.h.*.self_attention.query_key_value 1x5x16 > 1x5x48\nmodel 1x5x16 > 1x5x16",
			actual: "model.h.layers.*.self_attention.q_proj 5x16 > 5x16\n" +
				"model.h.layers.*.self_attention.k_proj 5x16 > 5x16\n" +
				"model.h.layers.*.self_attention.v_proj 5x16 > 5x16\nmodel 5x16 > 5x16",
			reason: "columns by head: no slice of them is q"},
		{name: "gate_up", golden: "model.layers.*.mlp.gate_proj 1x5x16 > 1x5x24\nmodel.layers.*.mlp.up_proj 1x5x16 > 1x5x24\n" +
			"model.layers.*.mlp 1x5x16 > 1x5x16",
			actual: "model.layers.layers.*.mlp.gate_up_proj 5x16 > 5x48\nmodel.layers.layers.*.mlp 5x16 > 5x16",
			reason: "gate first, up after"},
		{name: "fused_injected", golden: "model.mlp.gate_proj 1x5x16 > 1x5x24\nmodel.mlp.up_proj 1x5x16 > 1x5x24\nmodel 1x5x16 > 1x5x16",
			actual: "model.mlp.gate_up_proj computed_0=5x16,0=5x16 > 5x48\nmodel 5x16 > 5x16",
			reason: "what was computed for the input that both share, beside that input"},
		{name: "fused_width", golden: llamaTorch, actual: swap("9x128\nmodel.layers.layers.*.self_attn.o",
			"9x192\nmodel.layers.layers.*.self_attn.o").Replace(llamaMAX),
			reason: "a fused layer as wide as without grouped heads cannot be cut"},
		{name: "learned", golden: "model.chunkformer.encoder.layer.*.dense 1x9x64 > 1x9x64\n" +
			"model.chunkformer.encoder.layer.* 1x9x64 > 1x9x64\nmodel 1x9x64 > 1x9x64",
			actual: "model.encoder.layer.layers.*.dense 9x64 > 9x64\nmodel.encoder.layer.layers.* 9x64 > 9x64\n" +
				"model 9x64 > 9x64",
			reason: "an unknown word before all layers"},
		{name: "learned_shapes", golden: "model.vision.layers.*.dense 1x9x64 > 1x9x64\nmodel 1x9x64 > 1x9x64",
			actual: "model.layers.layers.*.dense 9x48 > 9x48\nmodel 9x64 > 9x64",
			reason: "another model after the unknown word"},
		{name: "mid_last_row", golden: llamaTorch, actual: swap("mlp.down_proj 9x128 > 9x64",
			"mlp.down_proj 9x128 > 1x64").Replace(llamaMAX),
			reason: "one row in the middle of the model is a wrong shape"},
		{name: "wrong_logits", golden: llamaTorch, actual: swap("0=1x320", "0=1x321").Replace(llamaMAX),
			reason: "a wrong shape of the whole model's output is a finding"},
		{name: "last_row_encoder", golden: bertTorch("model") + "\nmodel.pooler 2x6x64 > 2x64\n" +
			"model input_ids=i64:2x6 > last_hidden_state=2x6x64",
			actual: bertMAX + "\nmodel.pooler 2x64 > 2x64",
			reason: "the first token's row of a pooler is not the last row"},
		{name: "prompt", golden: "model.embed_tokens i64:1x7 > 1x7x64\nmodel i64:1x7 > 1x7x64",
			actual: "model.embed_tokens i64:8 > 8x64\nmodel i64:8 > 8x64",
			reason: "two prompts of other lengths"},
		{name: "calls", golden: "model.norm 1x7x64 > 1x7x64\nmodel.norm(2) 1x7x64 > 1x7x64\nmodel i64:1x7 > 1x7x64",
			actual: "model.norm 7x64 > 7x64\nmodel.norm(2) 7x64 > 7x64\nmodel.norm(3) 7x64 > 7x64\nmodel i64:7 > 7x64",
			reason: "a layer that is called more than once"},
		{name: "steps_as_calls", golden: "model.norm 1x7x64 > 1x7x64\nmodel i64:1x7 > 1x7x64\nmodel.norm(2) 1x1x64 > 1x1x64\n" +
			"model(2) i64:1x1 > 1x1x64",
			actual: "model.norm 7x64 > 7x64\nmodel i64:7 > 7x64\nstep 1\nmodel.norm 1x64 > 1x64\nmodel i64:1 > 1x64",
			reason: "a hook that was never told of steps"},
		{name: "shared_layer", golden: "model.a i64:1x7 > 1x7x64\nmodel.shared 1x7x64 > 1x7x64\nmodel.shared(2) 1x7x64 > 1x7x64\n" +
			"model i64:1x7 > 1x7x64",
			actual: "model.a i64:7 > 7x64\nmodel.shared 7x64 > 7x64\nmodel i64:7 > 7x64\nstep 1\n" +
				"model.a i64:1 > 1x64\nmodel.shared 1x64 > 1x64\nmodel i64:1 > 1x64",
			reason: "a layer that is called twice is no second step"},
		{name: "shifted", golden: "model.layers.0 1x7x64,1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.layers.0 0=u32:-,1=7x64,2=7x64 > 7x64\nmodel 7x64 > 7x64",
			reason: "a layer index in front moves both inputs"},
		{name: "shifted_fewer", golden: "model.layers.0 1x7x64,1x7x64,1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.layers.0 0=u32:-,1=7x64,2=7x64 > 7x64\nmodel 7x64 > 7x64",
			reason: "a layer index in front, and an input less"},
		{name: "tuple", golden: "model.attn 1x7x64 > 0=1x4x7x7,1=1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.attn 7x64 > 7x64\nmodel 7x64 > 7x64",
			reason: "weights before the hidden states"},
		{name: "natural_order", golden: swap("model.model.norm",
			"model.model.final_norm").Replace(llamaTorch), actual: "model.final_norm 1x64 > 1x64\n" + swap("model.norm",
			"model.zz").Replace(llamaMAX), opt: match.Options{ActualByName: true},
			reason: "the golden's order tells the end where the candidate's does not"},
		{name: "no_order", golden: "model.lm_head 1x5x4 > 1x5x9\nmodel.h.*.mlp 1x5x4 > 1x5x4\nmodel.ln_f 1x5x4 > 1x5x4\n" +
			"model.wte i64:1x5 > 1x5x4\nmodel i64:1x5 > 1x5x9",
			actual: "model.lm_head 1x4 > 1x9\nmodel.h.layers.*.mlp 5x4 > 1x4\nmodel.ln_f 1x4 > 1x4\n" +
				"model.wte i64:5 > 1x4\nmodel i64:5 > 1x9",
			opt:    match.Options{ActualByName: true, GoldenByName: true},
			reason: "without any order: not in a block, not where ids come in"},
		{name: "long_prompt", golden: swap("1x9", "1x256", "9x9", "256x256").Replace(llamaTorch),
			actual: swap("i64:9", "i64:256", "9x", "256x").Replace(llamaMAX),
			reason: "as many tokens as the table of frequencies has rows"},
		{name: "inner_models", golden: "model.model.norm 1x5x4 > 1x5x4\nmodel.model input_ids=i64:1x5 > 1x5x4\n" +
			"model input_ids=i64:1x5 > logits=1x5x9",
			actual: "model.norm 5x4 > 5x4\nmodel.language_model i64:5 > 5x7\nmodel i64:5 > 5x9",
			reason: "two inner models of other widths are two things"},
		{name: "encoder_for_decoder", golden: "model.encoder.layers.*.fc 5 > 5\nmodel 5 > 5",
			actual: "model.decoder.layers.*.fc 5 > 5\nmodel 5 > 5",
			reason: "a word exchanged for another"},
		{name: "one_vote", golden: "model.pooler.dense 1x4 > 1x4\nmodel 1x4 > 1x4",
			actual: "model.dense 1x4 > 1x4\nmodel 1x4 > 1x4",
			reason: "one layer is no evidence for a prefix"},
		{name: "no_v", golden: "model.attn.q_proj 5x4 > 5x4\nmodel.attn.k_proj 5x4 > 5x4\nmodel 5x4 > 5x4",
			actual: "model.attn.qkv_proj 5x4 > 5x8\nmodel 5x4 > 5x4",
			reason: "v is missing, so the columns are not known"},
		{name: "other_batch", golden: "model.lm_head 2x6x4 > 2x6x9\nmodel i64:2x6 > 2x6x9",
			actual: "model.lm_head 2x4 > 2x9\nmodel i64:1x6 > 2x9",
			reason: "ids have no last row"},
		{name: "offsets_by_name", golden: "model i64:1x2,i64:1x2 > 1x2x9", actual: "model i64:2,u32:2 > 2x9",
			reason: "unsigned offsets under the name of ids"},
		{name: "last_block", golden: "model.h.0.mlp 1x5x4 > 1x5x4\nmodel.h.1.mlp 1x5x4 > 1x5x4\nmodel.ln_f 1x5x4 > 1x5x4\n" +
			"model.lm_head 1x5x4 > 1x5x9",
			actual: "model.h.layers.0.mlp 5x4 > 5x4\nmodel.h.layers.1.mlp 1x4 > 1x4\nmodel.lm_head 1x4 > 1x9\n" +
				"model.ln_f 1x4 > 1x4",
			opt:    match.Options{ActualByName: true},
			reason: "the last block may have dropped the other rows already: nothing after it has them"},
		{name: "one_row", golden: "model.h.*.mlp 1x5x4 > 1x5x4\nmodel.ln_f 1x5x4 > 1x5x4\nmodel.lm_head 1x5x4 > 1x5x9",
			actual: "model.h.layers.*.mlp 1x4 > 1x4\nmodel.ln_f 1x4 > 1x4\nmodel.lm_head 1x4 > 1x9",
			reason: "one row from the first block on is another input"},
		{name: "partial_inputs", golden: "model.layers.0 1x7x64,1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.layers.0 1=7x64 > 7x64\nmodel 7x64 > 7x64",
			reason: "nothing in front of it: input 0 was not recorded"},
		{name: "bert_alone", golden: "model.bert i64:1x5 > 1x5x4\nmodel i64:1x5 > 1x5x9",
			actual: "bert i64:5 > 5x7\nmodel i64:5 > 5x9",
			reason: "a label of wrapper words is not stripped to one of them"},
		{name: "id_width_beside", golden: "model input_ids=i64:1x5 > 1x5x9",
			actual: "model i32:5,i64:5 > 5x9",
			reason: "integers of the ids' own width go first"},
		{name: "unsigned_ids", golden: "model.wte i64:1x5 > 1x5x9\nmodel input_ids=i64:1x5 > 1x5x9",
			actual: "model.wte u32:1x5 > 1x5x9\nmodel u8:1x5 > 1x5x9",
			reason: "in the same shape they can only be the ids"},
		{name: "unsigned_indices", golden: "model.gate 1x5x4 > 0=i64:5x2,1=5x2\nmodel 1x5 > 1x5",
			actual: "model.gate 5x4 > 0=u32:5x2,1=5x2\nmodel 1x5 > 1x5",
			reason: "the indices of a top-k have no sign in some engines"},
		{name: "named_inputs", golden: "model.emb input_ids=i64:1x5,token_type_ids=i64:1x5 > 1x5x4\nmodel 1x5 > 1x5",
			actual: "model.emb token_type_ids=i64:5,input_ids=i64:5 > 5x4\nmodel 1x5 > 1x5",
			reason: "ids and types look alike, and have names"},
		{name: "float_ids", golden: "model.wte i64:1x5 > 1x5x9\nmodel 1x5 > 1x5",
			actual: "model.wte 5 > 5x9\nmodel 1x5 > 1x5",
			reason: "the only input of an embedding is its ids, in floats too"},
		{name: "float_for_ids", golden: "model.wte i64:1x5 > 1x5x9\nmodel 1x5 > 1x5",
			actual: "model.wte 1x5x9 > 1x5x9\nmodel 1x5 > 1x5",
			reason: "floats of another shape are something else"},
		{name: "second_output", golden: "model.rope 1x5 > 0=1x5x4,1=1x5x4\nmodel 1x5 > 1x5",
			actual: "model.rope 1x5 > 0=1x5x4,1=1x5x2\nmodel 1x5 > 1x5",
			reason: "both return two, so a wrong shape of the second is a finding"},
		{name: "other_tuple", golden: "model.attn 1x5x4 > 0=1x5x4,1=1x2x5x5\nmodel 1x5 > 1x5",
			actual: "model.attn 1x5x4 > 0=1x5x4,1=1x5x4,2=5\nmodel 1x5 > 1x5",
			reason: "another tuple: its second element is another thing"},
		{name: "second_only", golden: "model.attn 1x5x4 > 0=1x5x4,1=1x5x4\nmodel 1x5 > last_hidden_state=1x5x4,pooler_output=1x4",
			actual: "model.attn 1x5x4 > 1=1x5x4\nmodel 1x5 > pooler_output=1x4",
			reason: "the only output that was recorded need not be the first"},
		{name: "batch_candidate", golden: "model.norm 5x4 > 5x4\nmodel i64:5 > 5x4",
			actual: "model.norm 1x5x4 > 1x5x4\nmodel i64:1x5 > 1x5x4",
			reason: "the golden may have no batch axis"},
		{name: "root_only", golden: "model input_ids=i64:1x5 > logits=1x5x9", actual: "model i64:5 > 0=1x9",
			reason: "logits of three axes tell of a model that generates"},
		{name: "steps_only", golden: "model i64:1x5 > 1x5x9\nstep 1\nmodel i64:1x1 > 1x1x9",
			actual: "model i64:5 > 1x9\nstep 1\nmodel i64:1 > 1x9",
			reason: "a second step tells it too"},
		{name: "generic_list", golden: "model.experts_bank.*.up 1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.experts_bank.layers.*.up 7x64 > 7x64\nmodel 7x64 > 7x64",
			reason: "a list of any name"},
		{name: "embeddings_only", golden: distilbert, actual: `
model.embeddings.word_embeddings i64:1x7 > 1x7x64
model.embeddings 1x7 > 1x7x64
model i64:1x7 > 1x7x64`,
			reason: "what a part of a model returns is not what all of it returns, whatever its shape"},
		{name: "first_block_only", golden: distilbert, actual: `
model.embeddings i64:1x7 > 1x7x64
model.transformer.layer.0 1x7x64 > 1x7x64
model i64:1x7 > 1x7x64`,
			reason: "the golden goes on after it"},
		{name: "blocks_of_the_inner_model", golden: distilbert, actual: `
model.transformer.layer.* 1x7x64 > 1x7x64
model i64:1x7 > 1x7x64`,
			reason: "the last block is there: what comes out is the inner model's"},
		{name: "inner_model_alone", golden: distilbert, actual: "model i64:1x7 > 1x7x64",
			reason: "nothing inside speaks against it"},
		{name: "all_with_a_wrong_shape", golden: distilbert, actual: `
model.embeddings i64:1x7 > 1x7x64
model.transformer.layer.* 1x7x64 > 1x7x64
model.classifier 1x64 > 1x3
model i64:1x7 > 1x3`,
			reason: "the whole model, whose output has another shape: a finding"},
		{name: "taps", golden: "layers.0.after_rope > tap=1x5x4\nmodel.norm > 1x5x4\nlogits > tap=1x5x9",
			actual: "model.layers.0.after_rope > tap=5x4\nmodel.norm > tap=5x4\nlogits > tap=1x9",
			reason: "a tensor saved by hand is a layer with one port; where the other side has a module of that name, its output is meant"},
		{name: "latent cache", golden: fmt.Sprintf(attention, "1x5x4x24"), actual: fmt.Sprintf(attention, "1x5x1x16"),
			reason: "a cache may keep another form of the tokens"},
		{name: "cache of no token", golden: fmt.Sprintf(attention, "1x5x4x24"), actual: fmt.Sprintf(attention, "1x5"), reason: "it holds nothing of a token"},
		{name: "cache of a token more", golden: fmt.Sprintf(attention, "1x5x4x24"), actual: fmt.Sprintf(attention, "1x6x4x24"), reason: "a fault"},
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
		{"gaps at the ends", "m.p 5 > 5\nm.q 5 > 5\nm.r 5 > 5\nm.a 5 > 5\nm.t 5 > 5", "m.a 5 > 5\nm.u 5 > 5\nm.v 5 > 5", match.Options{}, "before and after, of more layers than are named"},
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
		golden, actual := invent(t, tt.golden), invent(t, tt.actual)
		r, err := match.Runs(golden, actual, tt.opt)
		require.NoError(t, err, tt.name)
		check(t, golden, actual, r)
		fmt.Fprintf(&all, "=== %s: %s\n%s", tt.name, tt.reason, show(golden, actual, r))
	}
	toy.Kept(t, "runs.want", all.String())
}

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

// Two sequences of six tokens, of which the second has two of padding.
func TestPadding(t *testing.T) {
	flat := slices.Concat(pad...)
	last := make([]bool, 12)
	last[5], last[9] = true, true
	tests := []struct {
		name           string
		golden, actual string
		goldenView     match.View
		rowMask        []bool
		shape          []int
		reason         string
	}{
		{"hidden", "m 2x6x4 > 2x6x4", "m 2x6x4 > 2x6x4", nil, flat, []int{2, 6, 4}, "a row per token"},
		{"ragged without padding", "m 2x6x4 > 2x6x4", "m 10x4 > 10x4",
			match.View{{Kind: match.Reshape, Shape: []int{12, 4}}, {Kind: match.Rows, Keep: flat}}, nil,
			[]int{10, 4}, "real tokens only"},
		{"ids", "m 2x6x4 > i64:2x6", "m 2x6x4 > i64:2x6", match.View{{Kind: match.Reshape, Shape: []int{2, 6, 1}}},
			flat, []int{2, 6, 1}, "a row per id"},
		{"last row", "lm_head 2x6x4 > 2x6x4", "lm_head 2x4 > 2x4",
			match.View{{Kind: match.Reshape, Shape: []int{12, 4}}, {Kind: match.Rows, Keep: last}}, nil, []int{2, 4},
			"the last real token of each"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			golden, actual := invent(t, tt.golden), invent(t, tt.actual)
			r, err := match.Runs(golden, actual, match.Options{PadMask: pad})
			require.NoError(t, err)
			p := r.Pairs[len(r.Pairs)-1] // the output
			require.Empty(t, p.Problem)
			assert.Equal(t, tt.goldenView, p.GoldenView, tt.reason)
			assert.Equal(t, tt.rowMask, p.RowMask, tt.reason)
			assert.Equal(t, tt.shape, p.Shape, tt.reason)
		})
	}
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
		{"after a learned prefix", "model.x.bank.*.a 5 > 5\nmodel.x.bank.layers.0.a 5 > 5",
			"model.bank.*.a 5 > 5",
			match.Options{}, []string{"model.x.bank.0.a", "model.x.bank.layers.0.a", "equally well"},
			"a list with and without its name"},
		{"twice recorded", "m 5 > 5\nm 5 > 5", "m 5 > 5", match.Options{}, []string{"golden has m-input_0 twice"}, "one port twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := match.Runs(invent(t, tt.golden), invent(t, tt.actual), tt.opt)
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
