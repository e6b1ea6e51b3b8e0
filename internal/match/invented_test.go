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

// invent makes the ports of a model from a short form, in execution order. A line is a layer,
//
//	model.layers.*.mlp 1x7x64 > 1x7x64
//
// its inputs and outputs parted by commas, each [<name>=][<dtype>:]<shape>. Unnamed inputs are
// numbered, an unnamed output is "output". Lines with a * that follow each other are repeated for
// each of n blocks.
func invent(t testing.TB, n int, text string) []match.Port {
	t.Helper()
	var ports []match.Port
	step := "0"
	add := func(label, spec, prefix string, at int) {
		name, rest, named := strings.Cut(spec, "=")
		if !named {
			name, rest = fmt.Sprint(at), spec
		}
		port := prefix + "_" + name
		if !named && prefix == "output" {
			port = prefix
		}
		d := "f32"
		if dtype, shape, ok := strings.Cut(rest, ":"); ok {
			d, rest = dtype, shape
		}
		p := parse(t, fmt.Sprintf("%s %s-%s %s %s", step, label, port, d, rest))[0]
		p.Seq = len(ports)
		ports = append(ports, p)
	}
	layer := func(line string) {
		label, rest, _ := strings.Cut(line, " ")
		in, out, _ := strings.Cut(rest, ">")
		for i, s := range fields(in) {
			add(label, s, "input", i)
		}
		for i, s := range fields(out) {
			add(label, s, "output", i)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if s, ok := strings.CutPrefix(line, "step "); ok {
			step = s
			continue
		}
		if !strings.Contains(line, "*") {
			layer(line)
			continue
		}
		end := i
		for end < len(lines) && strings.Contains(lines[end], "*") {
			end++
		}
		for b := range n {
			for _, l := range lines[i:end] {
				layer(strings.ReplaceAll(strings.TrimSpace(l), "*", fmt.Sprint(b)))
			}
		}
		i = end - 1
	}
	return ports
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
}

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

func TestInvented(t *testing.T) {
	ragged := swap("i64:9", "i64:10", "9x", "10x").Replace(llamaMAX)
	two := swap("model.model.", "model.model.", "1x9", "2x6", "9x9", "6x6", "1x4x", "2x4x", "1x1x", "2x1x").Replace(llamaTorch)
	tests := []struct {
		name           string
		blocks         int
		golden, actual string
		opt            match.Options
		joins          []string // pairs that must be there, as "golden = candidate"
		never          []string // golden ports that must not be in a pair, or with "= " in front candidate ports
		problems       int
		reason         string
	}{
		{name: "smollm", blocks: 30, golden: llamaTorch, actual: llamaMAX, reason: "an LLM of 30 layers"},
		{name: "gemma3", blocks: 2, golden: swap("model.model", "model.model.language_model").Replace(llamaTorch) + `
model.model.vision_tower.layers.*.norm 1x4x48 > 1x4x48
model.model.vision_tower.norm 1x4x48 > 1x4x48`, actual: llamaMAX,
			joins: []string{"model.model.language_model.norm-output = model.norm-output",
				"model.model.language_model.layers.1.mlp-output = model.layers.layers.1.mlp-output"},
			never:  []string{"model.model.vision_tower.norm-output", "model.model.vision_tower.layers.0.norm-output"},
			reason: "the text model inside a multimodal one"},
		{name: "one_token", blocks: 2, golden: swap("1x9", "1x1", "9x9", "1x9").Replace(llamaTorch),
			actual: swap("i64:9", "i64:1", "9x", "1x").Replace(llamaMAX),
			joins:  []string{"model-input_input_ids = model-input_0", "model-output_logits = model-output_0"},
			never:  []string{"= model-input_2", "model-input_attention_mask"},
			reason: "a decode step: ids, number of logits and a mask of one token look alike"},
		{name: "padded_ragged", blocks: 2, golden: two, actual: swap("u32:2", "u32:3", "i64:10", "i64:10", "i64:1",
			"i64:2", "norm 1x", "norm 2x", "lm_head 1x", "lm_head 2x", "> 1x", "> 2x", "0=1x", "0=2x").Replace(ragged),
			opt: match.Options{PadMask: pad},
			joins: []string{"model.model.layers.1.self_attn.v_proj-output = model.layers.layers.1.self_attn.qkv_proj-output",
				"model.lm_head-output = model.lm_head-output"},
			reason: "two sequences in MAX without their padding, the last token of each at the end"},
		{name: "bert_prefix", blocks: 2,
			golden: bertTorch("model.bert") + "\n" +
				"model.bert input_ids=i64:2x6,attention_mask=i64:2x6,token_type_ids=i64:2x6 > last_hidden_state=2x6x64,pooler_output=2x64\nmodel.classifier 2x64 > 2x3\nmodel input_ids=i64:2x6 > logits=2x3",
			actual: bertMAX, opt: match.Options{PadMask: pad},
			reason: "the candidate is the model inside of the classifier; its second ids are positions or types"},
		{name: "pooled", blocks: 2,
			golden: bertTorch("model") + "\nmodel input_ids=i64:2x6 > last_hidden_state=2x6x64,pooler_output=2x64",
			actual: strings.TrimSuffix(bertMAX, "2x6x64") + "2x64",
			never:  []string{"model-output_last_hidden_state", "model-output_pooler_output", "= model-output"},
			reason: "a mean is not a tanh of the first token"},
		{name: "gpt2", blocks: 2, golden: `
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
		{name: "bloom", blocks: 2,
			golden: "model.h.*.self_attention.query_key_value 1x5x16 > 1x5x48\nmodel 1x5x16 > 1x5x16",
			actual: "model.h.layers.*.self_attention.q_proj 5x16 > 5x16\n" +
				"model.h.layers.*.self_attention.k_proj 5x16 > 5x16\n" +
				"model.h.layers.*.self_attention.v_proj 5x16 > 5x16\nmodel 5x16 > 5x16",
			never:  []string{"model.h.0.self_attention.query_key_value-output"},
			reason: "columns by head: no slice of them is q"},
		{name: "gate_up", blocks: 2,
			golden: "model.layers.*.mlp.gate_proj 1x5x16 > 1x5x24\nmodel.layers.*.mlp.up_proj 1x5x16 > 1x5x24\n" +
				"model.layers.*.mlp 1x5x16 > 1x5x16",
			actual: "model.layers.layers.*.mlp.gate_up_proj 5x16 > 5x48\nmodel.layers.layers.*.mlp 5x16 > 5x16",
			joins:  []string{"model.layers.1.mlp.up_proj-output = model.layers.layers.1.mlp.gate_up_proj-output"},
			reason: "gate first, up behind"},
		{name: "fused_width", blocks: 2, golden: llamaTorch, actual: swap("9x128\nmodel.layers.layers.*.self_attn.o",
			"9x192\nmodel.layers.layers.*.self_attn.o").Replace(llamaMAX), problems: 6,
			reason: "a fused layer as wide as without grouped heads cannot be cut"},
		{name: "learned", blocks: 3,
			golden: "model.chunkformer.encoder.layer.*.dense 1x9x64 > 1x9x64\n" +
				"model.chunkformer.encoder.layer.* 1x9x64 > 1x9x64\nmodel 1x9x64 > 1x9x64",
			actual: "model.encoder.layer.layers.*.dense 9x64 > 9x64\nmodel.encoder.layer.layers.* 9x64 > 9x64\n" +
				"model 9x64 > 9x64",
			joins:  []string{"model.chunkformer.encoder.layer.2.dense-output = model.encoder.layer.layers.2.dense-output"},
			reason: "an unknown word before all layers"},
		{name: "learned_shapes", blocks: 3,
			golden: "model.vision.layers.*.dense 1x9x64 > 1x9x64\nmodel 1x9x64 > 1x9x64",
			actual: "model.layers.layers.*.dense 9x48 > 9x48\nmodel 9x64 > 9x64",
			never:  []string{"model.vision.layers.0.dense-output"}, reason: "another model behind the unknown word"},
		{name: "mid_last_row", blocks: 2, golden: llamaTorch, actual: swap("mlp.down_proj 9x128 > 9x64",
			"mlp.down_proj 9x128 > 1x64").Replace(llamaMAX), problems: 2,
			reason: "one row in the middle of the model is a wrong shape"},
		{name: "wrong_logits", blocks: 2, golden: llamaTorch, actual: swap("0=1x320", "0=1x321").Replace(llamaMAX),
			problems: 1, reason: "a wrong shape of the whole model's output is a finding"},
		{name: "last_row_encoder", blocks: 2,
			golden: bertTorch("model") + "\nmodel.pooler 2x6x64 > 2x64\n" +
				"model input_ids=i64:2x6 > last_hidden_state=2x6x64",
			actual: bertMAX + "\nmodel.pooler 2x64 > 2x64", problems: 1,
			reason: "the first token's row of a pooler is not the last row"},
		{name: "prompt", blocks: 1, golden: "model.embed_tokens i64:1x7 > 1x7x64\nmodel i64:1x7 > 1x7x64",
			actual:   "model.embed_tokens i64:8 > 8x64\nmodel i64:8 > 8x64",
			problems: 4, reason: "two prompts of other lengths"},
		{name: "calls", blocks: 1,
			golden: "model.norm 1x7x64 > 1x7x64\nmodel.norm(2) 1x7x64 > 1x7x64\nmodel i64:1x7 > 1x7x64",
			actual: "model.norm 7x64 > 7x64\nmodel.norm(2) 7x64 > 7x64\nmodel.norm(3) 7x64 > 7x64\nmodel i64:7 > 7x64",
			joins:  []string{"model.norm(2)-output = model.norm(2)-output"}, never: []string{"= model.norm(3)-output"},
			reason: "a layer that is called more than once"},
		{name: "steps_as_calls", blocks: 1,
			golden: "model.norm 1x7x64 > 1x7x64\nmodel i64:1x7 > 1x7x64\nmodel.norm(2) 1x1x64 > 1x1x64\n" +
				"model(2) i64:1x1 > 1x1x64",
			actual: "model.norm 7x64 > 7x64\nmodel i64:7 > 7x64\nstep 1\nmodel.norm 1x64 > 1x64\nmodel i64:1 > 1x64",
			joins:  []string{"model.norm(2)-output = model.norm-output", "model(2)-output = model-output"},
			reason: "a hook that was never told of steps"},
		{name: "shared_layer", blocks: 1,
			golden: "model.a i64:1x7 > 1x7x64\nmodel.shared 1x7x64 > 1x7x64\nmodel.shared(2) 1x7x64 > 1x7x64\n" +
				"model i64:1x7 > 1x7x64",
			actual: "model.a i64:7 > 7x64\nmodel.shared 7x64 > 7x64\nmodel i64:7 > 7x64\nstep 1\n" +
				"model.a i64:1 > 1x64\nmodel.shared 1x64 > 1x64\nmodel i64:1 > 1x64",
			never: []string{"model.shared(2)-output"}, reason: "a layer that is called twice is no second step"},
		{name: "shifted", blocks: 1, golden: "model.layers.0 1x7x64,1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.layers.0 0=u32:-,1=7x64,2=7x64 > 7x64\nmodel 7x64 > 7x64",
			joins: []string{"model.layers.0-input_0 = model.layers.0-input_1",
				"model.layers.0-input_1 = model.layers.0-input_2"}, reason: "a layer index in front moves both inputs"},
		{name: "shifted_fewer", blocks: 1, golden: "model.layers.0 1x7x64,1x7x64,1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.layers.0 0=u32:-,1=7x64,2=7x64 > 7x64\nmodel 7x64 > 7x64", joins: []string{"model.layers.0-input_0 = model.layers.0-input_1"},
			never: []string{"model.layers.0-input_2"}, reason: "a layer index in front, and an input less"},
		{name: "tuple", blocks: 1, golden: "model.attn 1x7x64 > 0=1x4x7x7,1=1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.attn 7x64 > 7x64\nmodel 7x64 > 7x64",
			joins:  []string{"model.attn-output_1 = model.attn-output"}, reason: "weights before the hidden states"},
		{name: "natural_order", blocks: 2, golden: swap("model.model.norm",
			"model.model.final_norm").Replace(llamaTorch), actual: "model.final_norm 1x64 > 1x64\n" + swap("model.norm",
			"model.zz").Replace(llamaMAX), opt: match.Options{ActualByName: true},
			joins: []string{"model.model.final_norm-output = model.final_norm-output",
				"model.lm_head-output = model.lm_head-output"},
			reason: "the golden's order tells the end where the candidate's does not"},
		{name: "no_order", blocks: 2,
			golden: "model.lm_head 1x5x4 > 1x5x9\nmodel.h.*.mlp 1x5x4 > 1x5x4\nmodel.ln_f 1x5x4 > 1x5x4\n" +
				"model.wte i64:1x5 > 1x5x4\nmodel i64:1x5 > 1x5x9",
			actual: "model.lm_head 1x4 > 1x9\nmodel.h.layers.*.mlp 5x4 > 1x4\nmodel.ln_f 1x4 > 1x4\n" +
				"model.wte i64:5 > 1x4\nmodel i64:5 > 1x9",
			opt: match.Options{ActualByName: true, GoldenByName: true},
			joins: []string{"model-output = model-output", "model.lm_head-output = model.lm_head-output",
				"model.ln_f-output = model.ln_f-output"}, problems: 3,
			reason: "without any order: not in a block, not where ids come in"},
		{name: "long_prompt", blocks: 1, golden: swap("1x9", "1x256", "9x9", "256x256").Replace(llamaTorch),
			actual: swap("i64:9", "i64:256", "9x", "256x").Replace(llamaMAX),
			never: []string{"= model.layers.layers.0-input_3", "= model.layers.layers.0.self_attn-input_3",
				"model.model.layers.0-input_position_embeddings.0"},
			reason: "as many tokens as the table of frequencies has rows"},
		{name: "inner_models", blocks: 1,
			golden: "model.model.norm 1x5x4 > 1x5x4\nmodel.model input_ids=i64:1x5 > 1x5x4\n" +
				"model input_ids=i64:1x5 > logits=1x5x9",
			actual: "model.norm 5x4 > 5x4\nmodel.language_model i64:5 > 5x7\nmodel i64:5 > 5x9",
			joins:  []string{"model.model.norm-output = model.norm-output", "model-output_logits = model-output"},
			never:  []string{"= model.language_model-output", "model.model-output"},
			reason: "two inner models of other widths are two things"},
		{name: "encoder_for_decoder", blocks: 3, golden: "model.encoder.layers.*.fc 5 > 5\nmodel 5 > 5",
			actual: "model.decoder.layers.*.fc 5 > 5\nmodel 5 > 5",
			never:  []string{"model.encoder.layers.0.fc-output"}, reason: "a word exchanged for another"},
		{name: "one_vote", blocks: 1, golden: "model.pooler.dense 1x4 > 1x4\nmodel 1x4 > 1x4",
			actual: "model.dense 1x4 > 1x4\nmodel 1x4 > 1x4", never: []string{"model.pooler.dense-output"},
			reason: "one layer is no evidence for a prefix"},
		{name: "no_v", blocks: 1, golden: "model.attn.q_proj 5x4 > 5x4\nmodel.attn.k_proj 5x4 > 5x4\nmodel 5x4 > 5x4",
			actual: "model.attn.qkv_proj 5x4 > 5x8\nmodel 5x4 > 5x4",
			never:  []string{"model.attn.q_proj-output"}, reason: "v is missing, so the columns are not known"},
		{name: "other_batch", blocks: 1, golden: "model.lm_head 2x6x4 > 2x6x9\nmodel i64:2x6 > 2x6x9",
			actual: "model.lm_head 2x4 > 2x9\nmodel i64:1x6 > 2x9", problems: 1,
			reason: "ids have no last row"},
		{name: "offsets_by_name", blocks: 1, golden: "model i64:1x2,i64:1x2 > 1x2x9", actual: "model i64:2,u32:2 > 2x9",
			joins: []string{"model-input_0 = model-input_0"}, never: []string{"= model-input_1"},
			reason: "unsigned offsets under the name of ids"},
		{name: "last_block", blocks: 1,
			golden: "model.h.0.mlp 1x5x4 > 1x5x4\nmodel.h.1.mlp 1x5x4 > 1x5x4\nmodel.ln_f 1x5x4 > 1x5x4\n" +
				"model.lm_head 1x5x4 > 1x5x9",
			actual: "model.h.layers.0.mlp 5x4 > 5x4\nmodel.h.layers.1.mlp 1x4 > 1x4\nmodel.lm_head 1x4 > 1x9\n" +
				"model.ln_f 1x4 > 1x4",
			opt:    match.Options{ActualByName: true},
			joins:  []string{"model.h.1.mlp-output = model.h.layers.1.mlp-output"},
			reason: "the last block may have dropped the other rows already: nothing behind it has them"},
		{name: "one_row", blocks: 2, golden: "model.h.*.mlp 1x5x4 > 1x5x4\nmodel.ln_f 1x5x4 > 1x5x4\nmodel.lm_head 1x5x4 > 1x5x9",
			actual: "model.h.layers.*.mlp 1x4 > 1x4\nmodel.ln_f 1x4 > 1x4\nmodel.lm_head 1x4 > 1x9", problems: 8,
			reason: "one row from the first block on is another input"},
		{name: "partial_inputs", blocks: 1, golden: "model.layers.0 1x7x64,1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.layers.0 1=7x64 > 7x64\nmodel 7x64 > 7x64",
			joins:  []string{"model.layers.0-input_1 = model.layers.0-input_1"},
			never:  []string{"model.layers.0-input_0"}, reason: "nothing in front of it: input 0 was not recorded"},
		{name: "bert_alone", blocks: 1, golden: "model.bert i64:1x5 > 1x5x4\nmodel i64:1x5 > 1x5x9",
			actual: "bert i64:5 > 5x7\nmodel i64:5 > 5x9", never: []string{"model.bert-output", "= bert-output"},
			reason: "a label of wrapper words is not stripped to one of them"},
		{name: "id_width_beside", blocks: 1, golden: "model input_ids=i64:1x5 > 1x5x9",
			actual: "model i32:5,i64:5 > 5x9", joins: []string{"model-input_input_ids = model-input_1"},
			never: []string{"= model-input_0"}, reason: "integers of the ids' own width go first"},
		{name: "unsigned_ids", blocks: 1, golden: "model.wte i64:1x5 > 1x5x9\nmodel input_ids=i64:1x5 > 1x5x9",
			actual: "model.wte u32:1x5 > 1x5x9\nmodel u8:1x5 > 1x5x9",
			joins:  []string{"model.wte-input_0 = model.wte-input_0", "model-input_input_ids = model-input_0"},
			reason: "in the same shape they can only be the ids"},
		{name: "unsigned_indices", blocks: 1, golden: "model.gate 1x5x4 > 0=i64:5x2,1=5x2\nmodel 1x5 > 1x5",
			actual: "model.gate 5x4 > 0=u32:5x2,1=5x2\nmodel 1x5 > 1x5",
			joins:  []string{"model.gate-output_0 = model.gate-output_0", "model.gate-output_1 = model.gate-output_1"},
			reason: "the indices of a top-k have no sign in some engines"},
		{name: "named_inputs", blocks: 1, golden: "model.emb input_ids=i64:1x5,token_type_ids=i64:1x5 > 1x5x4\nmodel 1x5 > 1x5",
			actual: "model.emb token_type_ids=i64:5,input_ids=i64:5 > 5x4\nmodel 1x5 > 1x5",
			joins:  []string{"model.emb-input_input_ids = model.emb-input_input_ids", "model.emb-input_token_type_ids = model.emb-input_token_type_ids"},
			reason: "ids and types look alike, and have names"},
		{name: "float_ids", blocks: 1, golden: "model.wte i64:1x5 > 1x5x9\nmodel 1x5 > 1x5",
			actual: "model.wte 5 > 5x9\nmodel 1x5 > 1x5", joins: []string{"model.wte-input_0 = model.wte-input_0"},
			reason: "the only input of an embedding is its ids, in floats too"},
		{name: "float_for_ids", blocks: 1, golden: "model.wte i64:1x5 > 1x5x9\nmodel 1x5 > 1x5",
			actual: "model.wte 1x5x9 > 1x5x9\nmodel 1x5 > 1x5", never: []string{"= model.wte-input_0"},
			reason: "floats of another shape are something else"},
		{name: "second_output", blocks: 1, golden: "model.rope 1x5 > 0=1x5x4,1=1x5x4\nmodel 1x5 > 1x5",
			actual: "model.rope 1x5 > 0=1x5x4,1=1x5x2\nmodel 1x5 > 1x5", problems: 1,
			reason: "both return two, so a wrong shape of the second is a finding"},
		{name: "other_tuple", blocks: 1, golden: "model.attn 1x5x4 > 0=1x5x4,1=1x2x5x5\nmodel 1x5 > 1x5",
			actual: "model.attn 1x5x4 > 0=1x5x4,1=1x5x4,2=5\nmodel 1x5 > 1x5",
			joins:  []string{"model.attn-output_0 = model.attn-output_0"}, never: []string{"model.attn-output_1"},
			reason: "another tuple: its second element is another thing"},
		{name: "second_only", blocks: 1,
			golden: "model.attn 1x5x4 > 0=1x5x4,1=1x5x4\nmodel 1x5 > last_hidden_state=1x5x4,pooler_output=1x4",
			actual: "model.attn 1x5x4 > 1=1x5x4\nmodel 1x5 > pooler_output=1x4",
			joins: []string{"model.attn-output_1 = model.attn-output_1",
				"model-output_pooler_output = model-output_pooler_output"}, never: []string{"model.attn-output_0"},
			reason: "the only output that was recorded need not be the first"},
		{name: "batch_candidate", blocks: 1, golden: "model.norm 5x4 > 5x4\nmodel i64:5 > 5x4",
			actual: "model.norm 1x5x4 > 1x5x4\nmodel i64:1x5 > 1x5x4",
			joins:  []string{"model.norm-output = model.norm-output", "model-input_0 = model-input_0"},
			reason: "the golden may have no batch axis"},
		{name: "root_only", blocks: 1, golden: "model input_ids=i64:1x5 > logits=1x5x9", actual: "model i64:5 > 0=1x9",
			joins:  []string{"model-output_logits = model-output_0"},
			reason: "logits of three axes tell of a model that generates"},
		{name: "steps_only", blocks: 1, golden: "model i64:1x5 > 1x5x9\nstep 1\nmodel i64:1x1 > 1x1x9",
			actual: "model i64:5 > 1x9\nstep 1\nmodel i64:1 > 1x9",
			joins:  []string{"model-output = model-output"}, reason: "a second step tells it too"},
		{name: "generic_list", blocks: 2, golden: "model.experts_bank.*.up 1x7x64 > 1x7x64\nmodel 1x7x64 > 1x7x64",
			actual: "model.experts_bank.layers.*.up 7x64 > 7x64\nmodel 7x64 > 7x64",
			joins:  []string{"model.experts_bank.1.up-output = model.experts_bank.layers.1.up-output"},
			reason: "a list of any name"},
		{name: "embeddings_only", blocks: 2, golden: distilbert, actual: `
model.embeddings.word_embeddings i64:1x7 > 1x7x64
model.embeddings 1x7 > 1x7x64
model i64:1x7 > 1x7x64`,
			joins:  []string{"model.distilbert.embeddings-output = model.embeddings-output"},
			never:  []string{"model.distilbert-output", "model-output", "= model-output"},
			reason: "what a part of a model returns is not what all of it returns, whatever its shape"},
		{name: "first_block_only", blocks: 2, golden: distilbert, actual: `
model.embeddings i64:1x7 > 1x7x64
model.transformer.layer.0 1x7x64 > 1x7x64
model i64:1x7 > 1x7x64`,
			joins:  []string{"model.distilbert.transformer.layer.0-output = model.transformer.layer.0-output"},
			never:  []string{"model.distilbert-output", "model-output", "= model-output"},
			reason: "the golden goes on behind it"},
		{name: "blocks_of_the_inner_model", blocks: 2, golden: distilbert, actual: `
model.transformer.layer.* 1x7x64 > 1x7x64
model i64:1x7 > 1x7x64`,
			joins:  []string{"model.distilbert-output = model-output"},
			reason: "the last block is there: what comes out is the inner model's"},
		{name: "inner_model_alone", blocks: 2, golden: distilbert, actual: "model i64:1x7 > 1x7x64",
			joins: []string{"model.distilbert-output = model-output"}, reason: "nothing inside speaks against it"},
		{name: "all_with_a_wrong_shape", blocks: 2, golden: distilbert, actual: `
model.embeddings i64:1x7 > 1x7x64
model.transformer.layer.* 1x7x64 > 1x7x64
model.classifier 1x64 > 1x3
model i64:1x7 > 1x3`, problems: 2,
			joins:  []string{"model-output = model-output"},
			reason: "the whole model, whose output has another shape: a finding"},
	}
	var all strings.Builder
	for _, tt := range tests {
		golden, actual := invent(t, tt.blocks, tt.golden), invent(t, tt.blocks, tt.actual)
		r, err := match.Runs(golden, actual, tt.opt)
		require.NoError(t, err, tt.name)
		check(t, golden, actual, r)
		checkViews(t, golden, actual, r)
		pairs, problems := map[string]bool{}, 0
		for _, p := range r.Pairs {
			g, a := labels(golden, p.Golden), labels(actual, p.Actual)
			pairs[g+" = "+a] = true
			if p.Problem != "" {
				problems++
			}
		}
		for _, want := range tt.joins {
			assert.True(t, pairs[want], "%s: no pair %s: %s", tt.name, want, tt.reason)
		}
		for _, label := range tt.never {
			for pair := range pairs {
				g, a, _ := strings.Cut(pair, " = ")
				assert.False(t, strings.HasPrefix(label, "= ") && "= "+a == label || g == label, "%s: %s: %s", tt.name, pair, tt.reason)
			}
		}
		assert.Equal(t, tt.problems, problems, "%s: %s", tt.name, tt.reason)
		fmt.Fprintf(&all, "=== %s: %s\n%s", tt.name, tt.reason, show(golden, actual, r))
	}
	toy.Kept(t, "invented.want", all.String())
}

func labels(ports []match.Port, indices []int) string {
	var out []string
	for _, i := range indices {
		out = append(out, ports[i].Label())
	}
	return strings.Join(out, " + ")
}
