package weights

import (
	"regexp"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// words are the names of modules by what they are called in families and formats, folded as
// match.Key folds them. Of layers without the list and the number. What only llama.cpp calls so is in
// checkpoint.LlamaNames, if Hugging Face has one name for it.
var words = map[string]string{
	"embed": "embedtokens wte embedin wordembeddings tokembeddings embeddings.wordembeddings embedding " +
		"embeddings.tokembeddings embeddings shared",
	"pos":    "positionembd wpe embeddings.positionembeddings embedpositions",
	"norm":   "norm lnf finallayernorm finalnorm lnfinal",
	"lmhead": "lmhead embedout",

	"attn.q": "selfattn.qproj attention.wq attn.qproj attention.self.query attention.qlin attn.q selfattn.q " +
		"attention.attention.query attention.qproj attn.attention.qproj selfattention.q",
	"attn.k": "selfattn.kproj attention.wk attn.kproj attention.self.key attention.klin attn.k selfattn.k " +
		"attention.attention.key attention.kproj attn.attention.kproj selfattention.k",
	"attn.v": "selfattn.vproj attention.wv attn.vproj attention.self.value attention.vlin attn.v selfattn.v " +
		"attention.attention.value attention.vproj attn.attention.vproj selfattention.v",
	"attn.qkv": "selfattn.qkvproj attnqkv attn.cattn attn.wqkv attention.querykeyvalue selfattn.querykeyvalue " +
		"selfattention.querykeyvalue attn.qkvproj attn.qkv selfattn.qkv attention.wqkv mixer.wqkv attention.qkvproj",
	"attn.o": "selfattn.oproj attention.wo attn.oproj attn.cproj attention.dense attention.oproj " +
		"selfattention.dense attn.outproj selfattn.outproj attention.output.dense selfattn.dense attention.outlin " +
		"attn.wo attn.attention.outproj selfattention.o",
	"attn.qnorm":   "selfattn.qnorm attn.qnorm selfattn.qlayernorm",
	"attn.knorm":   "selfattn.knorm attn.knorm selfattn.klayernorm",
	"attn.sinks":   "selfattn.sinks attnsinks",
	"attn.qa":      "selfattn.qaproj attnqa",
	"attn.qb":      "selfattn.qbproj attnqb",
	"attn.qanorm":  "selfattn.qalayernorm attnqanorm",
	"attn.kva":     "selfattn.kvaprojwithmqa attnkvamqa",
	"attn.kvb":     "selfattn.kvbproj attnkvb",
	"attn.kvanorm": "selfattn.kvalayernorm attnkvanorm",

	"ffn.gate": "mlp.gateproj feedforward.w1 mlp.w1 feedforward.gateproj",
	"ffn.up": "mlp.upproj feedforward.w3 mlp.w3 mlp.cfc mlp.densehto4h ffn.upproj " +
		"mlp.fc1 fc1 intermediate.dense mlp.fcin ffn.lin1 feedforward.upproj mlp.wi",
	"ffn.down": "mlp.downproj feedforward.w2 mlp.w2 mlp.cproj mlp.dense4htoh ffn.downproj " +
		"mlp.fc2 fc2 output.dense mlp.fcout ffn.lin2 feedforward.downproj mlp.wo",
	"ffn.gateup": "mlp.gateupproj mlp.gateup feedforward.gateupproj ffngateup",

	"norm1": "inputlayernorm attentionnorm ln1 attention.norm norm1",
	"norm2": "postattentionlayernorm ln2 norm2",
	"norm3": "prefeedforwardlayernorm",
	"norm4": "postfeedforwardlayernorm postffwnorm",

	"router": "mlp.gate ffngateinp blocksparsemoe.gate mlp.router feedforward.router feedforward.gate " +
		"mlp.gate.gatescore blocksparsemoe.router.layer",
	"router.correction": "mlp.gate.escorecorrection expprobsb mlp.escorecorrection",

	"experts.gate": "ffngateexps mlp.switchmlp.gateproj " +
		"blocksparsemoe.switchmlp.gateproj mlp.experts.gateproj mlp.experts.w1 feedforward.experts.gateproj",
	"experts.up": "ffnupexps mlp.switchmlp.upproj blocksparsemoe.switchmlp.upproj mlp.experts.upproj mlp.experts.w3 " +
		"feedforward.experts.upproj",
	"experts.down": "ffndownexps mlp.switchmlp.downproj " +
		"blocksparsemoe.switchmlp.downproj mlp.experts.downproj mlp.experts.w2 feedforward.experts.downproj",
	"experts.gateup": "ffngateupexps mlp.experts.gateupproj mlp.switchmlp.gateupproj feedforward.experts.gateupproj",

	"shared.gate":   "mlp.sharedexpert.gateproj mlp.sharedexperts.gateproj ffngateshexp feedforward.sharedexpert.gateproj",
	"shared.up":     "mlp.sharedexpert.upproj mlp.sharedexperts.upproj ffnupshexp feedforward.sharedexpert.upproj",
	"shared.down":   "mlp.sharedexpert.downproj mlp.sharedexperts.downproj ffndownshexp feedforward.sharedexpert.downproj",
	"shared.gateup": "mlp.sharedexpert.gateupproj mlp.sharedexperts.gateupproj",
	"shared.router": "mlp.sharedexpertgate ffngateinpshexp",
}

// called is words the other way round.
var called = func() map[string]string {
	out := map[string]string{}
	for name, list := range words {
		for _, w := range strings.Fields(list) {
			out[w] = name
		}
		out[name] = name
	}
	for llama, name := range checkpoint.LlamaNames {
		out[match.Key(llama)] = out[match.Key(name)]
	}
	return out
}()

var (
	// match.Key leaves out "layers" behind encoder and decoder.
	inList = regexp.MustCompile(`^(?:(encoder|decoder|enc|dec)\.(?:(?:layers?|h|blk|blocks?)\.)?|(?:layers?|h|blk|blocks?)\.)(\d+)\.(.+)$`)
	expert = regexp.MustCompile(`^(?:mlp|blocksparsemoe|feedforward)\.experts\.(\d+)\.(gateproj|upproj|downproj|gateupproj|w1|w2|w3)$`)
	number = regexp.MustCompile(`\d+`)
)

// weight is a weight with its place in the model.
type weight struct {
	name  string // as it is called
	t     *tensor.Tensor
	layer string // "layers.3", "" outside of a list
	role  string // "attn.q", or the folded name
	param string // "weight", "bias", ""
	index string // of an expert, ""

	by []string // how it was cut out of another: "fused", "stacked"
}

// key is the same on both sides.
func (w *weight) key() string {
	return strings.Join([]string{w.layer, w.role, w.index, w.param}, "/")
}

// family is what all weights of a kind share.
func (w *weight) family() string { return number.ReplaceAllString(w.role+"."+w.param, "*") }

// place returns the place of a weight by its name, and what the names beside it tell.
func place(t tensor.Named, have sideShape) *weight {
	w := &weight{name: t.Name, t: t.Tensor}
	key := match.Key(t.Name)
	for _, p := range []string{"weight", "bias"} {
		if base, ok := strings.CutSuffix(key, "."+p); ok {
			key, w.param = base, p
		}
	}
	if m := inList.FindStringSubmatch(key); m != nil {
		w.layer, key = "layers."+m[2], m[3]
		if have.encoder && have.decoder {
			w.layer = m[1][:min(len(m[1]), 3)] + "." + w.layer
		}
	}
	if base, ok := strings.CutSuffix(key, "projbias"); ok && strings.Contains(key, "experts.") {
		key, w.param = base+"proj", "bias" // gpt-oss
	}
	if m := expert.FindStringSubmatch(key); m != nil {
		w.index, key = m[1], "mlp.experts."+m[2]
	}
	w.role = key
	if name, ok := called[key]; ok && (w.layer != "" || !strings.Contains(name, ".")) {
		w.role = name
	}
	if w.layer != "" {
		switch key {
		case "postattentionnorm":
			w.role = "norm2"
		case "ffnnorm":
			w.role = "norm2"
			if have.sandwich {
				w.role = "norm3"
			}
		case "output", "norm", "embedding":
			w.role = key // only outside of layers are these what they are called
		}
	}
	if w.param == "" && strings.HasPrefix(w.role, "experts.") {
		w.param = "weight"
	}
	return w
}

// sideShape is what the names of a side say of all of its weights.
type sideShape struct {
	sandwich         bool // norms before and after each part of a layer, as Gemma has them
	encoder, decoder bool // lists of layers that are called so
}

func shapeOf(s *Side) (h sideShape) {
	for _, t := range s.Tensors {
		h.sandwich = h.sandwich || strings.Contains(t.Name, "post_ffw_norm")
		if m := inList.FindStringSubmatch(match.Key(t.Name)); m != nil {
			h.encoder = h.encoder || strings.HasPrefix(m[1], "enc")
			h.decoder = h.decoder || strings.HasPrefix(m[1], "dec")
		}
	}
	return h
}

// placed returns all weights of a side by their keys, those with the same key under their own
// names. Which lists of layers there are the other side tells, too: it may hold a part of the model.
func placed(s, other *Side) map[string]*weight {
	have, beside := shapeOf(s), shapeOf(other)
	have.encoder, have.decoder = have.encoder || beside.encoder, have.decoder || beside.decoder
	out, twice := map[string]*weight{}, map[string]bool{}
	for _, t := range s.Tensors {
		w := place(t, have)
		key := w.key()
		if o := out[key]; o != nil || twice[key] {
			if o != nil {
				delete(out, key)
				out[o.name] = o
			}
			twice[key] = true
			key = w.name
		}
		out[key] = w
	}
	return out
}

// unjudged are buffers that engines calculate by themselves.
var unjudged = regexp.MustCompile(`(?i)(inv_freq|position_ids|token_type_ids|masked_bias|attn\.bias|` +
	`rope_freqs\.weight|rotary_emb\..*|num_batches_tracked|cached_(cos|sin)|(cos|sin)_cached)$`)
