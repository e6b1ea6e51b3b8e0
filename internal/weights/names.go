package weights

import (
	"regexp"
	"strings"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// words are the names of modules by what they are called in families and formats, folded as
// match.Key folds them. Of layers without the list and the number.
var words = map[string]string{
	"embed":  "embedtokens tokenembd wte embedin wordembeddings tokembeddings embeddings.wordembeddings embedding",
	"pos":    "positionembd wpe embeddings.positionembeddings embedpositions",
	"norm":   "norm outputnorm lnf finallayernorm finalnorm lnfinal",
	"lmhead": "lmhead output embedout",

	"attn.q": "selfattn.qproj attnq attention.wq attn.qproj attention.self.query attention.qlin attn.q selfattn.q",
	"attn.k": "selfattn.kproj attnk attention.wk attn.kproj attention.self.key attention.klin attn.k selfattn.k",
	"attn.v": "selfattn.vproj attnv attention.wv attn.vproj attention.self.value attention.vlin attn.v selfattn.v",
	"attn.qkv": "selfattn.qkvproj attnqkv attn.cattn attn.wqkv attention.querykeyvalue " +
		"selfattention.querykeyvalue attn.qkvproj attn.qkv selfattn.qkv attention.wqkv",
	"attn.o": "selfattn.oproj attnoutput attention.wo attn.oproj attn.cproj attention.dense " +
		"selfattention.dense attn.outproj selfattn.outproj attention.output.dense selfattn.dense attention.outlin",
	"attn.qnorm": "selfattn.qnorm attnqnorm attn.qnorm",
	"attn.knorm": "selfattn.knorm attnknorm attn.knorm",
	"attn.sinks": "selfattn.sinks attnsinks",
	"mlp.gate":   "mlp.gateproj ffngate feedforward.w1 mlp.w1 feedforward.gateproj",
	"mlp.up": "mlp.upproj ffnup feedforward.w3 mlp.w3 mlp.cfc mlp.densehto4h " +
		"mlp.fc1 fc1 intermediate.dense mlp.fcin ffn.lin1 feedforward.upproj",
	"mlp.down": "mlp.downproj ffndown feedforward.w2 mlp.w2 mlp.cproj mlp.dense4htoh " +
		"mlp.fc2 fc2 output.dense mlp.fcout ffn.lin2 feedforward.downproj",
	"mlp.gateup": "mlp.gateupproj mlp.gateup feedforward.gateupproj ffngateup",
	"norm1":      "inputlayernorm attnnorm attentionnorm ln1 attention.norm",
	"norm2":      "postattentionlayernorm ln2",
	"norm3":      "prefeedforwardlayernorm",
	"norm4":      "postfeedforwardlayernorm postffwnorm",
	"router":     "mlp.gate ffngateinp blocksparsemoe.gate mlp.router feedforward.router",

	"experts.gate": "ffngateexps mlp.switchmlp.gateproj " +
		"blocksparsemoe.switchmlp.gateproj mlp.experts.gateproj mlp.experts.w1",
	"experts.up": "ffnupexps mlp.switchmlp.upproj blocksparsemoe.switchmlp.upproj mlp.experts.upproj mlp.experts.w3",
	"experts.down": "ffndownexps mlp.switchmlp.downproj " +
		"blocksparsemoe.switchmlp.downproj mlp.experts.downproj mlp.experts.w2",
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
	return out
}()

var (
	inList = regexp.MustCompile(`^(?:(?:encoder|decoder)\.)?(?:layers?|h|blk|blocks?)\.(\d+)\.(.+)$`)
	expert = regexp.MustCompile(`^(?:mlp|blocksparsemoe|feedforward)\.experts\.(\d+)\.(gateproj|upproj|downproj|w1|w2|w3)$`)
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
}

// key is the same on both sides.
func (w *weight) key() string {
	return strings.Join([]string{w.layer, w.role, w.index, w.param}, "/")
}

// family is what all weights of a kind share.
func (w *weight) family() string { return number.ReplaceAllString(w.role+"."+w.param, "*") }

// place returns the place of a weight by its name. sandwich says that the model has norms before
// and behind each part of a layer, as Gemma does.
func place(t tensor.Named, sandwich bool) *weight {
	w := &weight{name: t.Name, t: t.Tensor}
	key := match.Key(t.Name)
	for _, p := range []string{"weight", "bias"} {
		if base, ok := strings.CutSuffix(key, "."+p); ok {
			key, w.param = base, p
		}
	}
	if m := inList.FindStringSubmatch(key); m != nil {
		w.layer, key = "layers."+m[1], m[2]
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
			if sandwich {
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

// placed returns all weights of a side by their keys, those with the same key under their own
// names.
func placed(s *Side) map[string]*weight {
	sandwich := false
	for _, t := range s.Tensors {
		sandwich = sandwich || strings.Contains(t.Name, "post_ffw_norm")
	}
	out, twice := map[string]*weight{}, map[string]bool{}
	for _, t := range s.Tensors {
		w := place(t, sandwich)
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
