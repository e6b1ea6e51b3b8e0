package weights

import (
	"maps"
	"regexp"
	"slices"
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

	"norm1": "inputlayernorm attentionnorm ln1 attention.norm norm1",
	"norm2": "postattentionlayernorm ln2 norm2",
	"norm3": "prefeedforwardlayernorm",
	"norm4": "postfeedforwardlayernorm postffwnorm",

	"attn.qkv": "attnqkv mixer.wqkv", "attn.sinks": "attnsinks",
	"attn.qa": "attnqa", "attn.qb": "attnqb", "attn.qanorm": "attnqanorm",
	"attn.kva": "attnkvamqa", "attn.kvb": "attnkvb", "attn.kvanorm": "attnkvanorm",

	"ffn.up": "fc1 intermediate.dense", "ffn.down": "fc2 output.dense", "ffn.gateup": "ffngateup",
	"experts.gate": "ffngateexps", "experts.gateup": "ffngateupexps",
	"experts.up": "ffnupexps", "experts.down": "ffndownexps",
	"shared.gate": "ffngateshexp", "shared.up": "ffnupshexp", "shared.down": "ffndownshexp",

	"router": "mlp.gate ffngateinp blocksparsemoe.gate mlp.router feedforward.router feedforward.gate " +
		"mlp.gate.gatescore blocksparsemoe.router.layer",
	"router.correction": "mlp.gate.escorecorrection expprobsb mlp.escorecorrection",
	"shared.router":     "mlp.sharedexpertgate ffngateinpshexp",
}

// blocks are the modules whose parts have names of their own.
var blocks = []struct {
	name, called string
	parts        map[string]string
}{
	{"attn", "selfattn selfattention attn attn.attention attention attention.self attention.attention", map[string]string{
		"q": "q qproj wq query qlin", "k": "k kproj wk key klin", "v": "v vproj wv value vlin",
		"qkv": "qkv qkvproj wqkv cattn querykeyvalue", "o": "o oproj wo cproj dense outproj output.dense outlin",
		"qnorm": "qnorm qlayernorm", "knorm": "knorm klayernorm", "sinks": "sinks",
		"qa": "qaproj", "qb": "qbproj", "qanorm": "qalayernorm",
		"kva": "kvaprojwithmqa", "kvb": "kvbproj", "kvanorm": "kvalayernorm",
	}},
	{"ffn", "mlp feedforward ffn", mlp},
	{"experts", "mlp.experts mlp.switchmlp blocksparsemoe.switchmlp feedforward.experts", mlp},
	{"shared", "mlp.sharedexpert mlp.sharedexperts feedforward.sharedexpert", mlp},
}

var mlp = map[string]string{
	"gate": "gateproj w1", "up": "upproj w3 cfc densehto4h fc1 fcin lin1 wi",
	"down": "downproj w2 cproj dense4htoh fc2 fcout lin2 wo", "gateup": "gateupproj gateup",
}

// called are the roles by all these names.
var called = func() map[string]string {
	out := map[string]string{}
	add := func(role, prefix, list string) {
		for _, w := range strings.Fields(list) {
			out[prefix+w] = role
		}
		out[role] = role
	}
	for role, list := range words {
		add(role, "", list)
	}
	for _, b := range blocks {
		for _, block := range strings.Fields(b.called) {
			for part, list := range b.parts {
				add(b.name+"."+part, block+".", list)
			}
		}
	}
	for llama, name := range checkpoint.LlamaNames {
		out[match.Key(llama)] = out[match.Key(name)]
	}
	return out
}()

var (
	// match.Key leaves out "layers" after encoder and decoder.
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

	by     []string // how it was cut out of another: "fused", "stacked"
	at     string   // its key, or its name where others have the same key
	number int      // among the tensors of its side
	taken  bool     // it has a partner
}

// isNorm reports whether it is what a norm multiplies by.
func (w *weight) isNorm() bool { return strings.Contains(w.role, "norm") && w.param == "weight" }

// key is the same on both sides.
func (w *weight) key() string {
	return strings.Join([]string{w.layer, w.role, w.index, w.param}, "/")
}

// family is what all weights of a kind share.
func (w *weight) family() string { return number.ReplaceAllString(w.role+"."+w.param, "*") }

// place returns the place of a weight by its name, and what the names beside it tell: whether there are norms before
// and after each part of a layer, as Gemma has them, and lists of layers of an encoder and of a decoder.
func place(t tensor.Named, isSandwich, hasBoth bool) *weight {
	w := &weight{name: t.Name, t: t.Tensor}
	key := match.Key(t.Name)
	for _, p := range []string{"weight", "bias"} {
		if base, ok := strings.CutSuffix(key, "."+p); ok {
			key, w.param = base, p
		}
	}
	if m := inList.FindStringSubmatch(key); m != nil {
		w.layer, key = "layers."+m[2], m[3]
		if hasBoth {
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
			if isSandwich {
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

// shelf is the weights of a side by their places.
type shelf struct {
	at   map[string]*weight
	ends map[string][]*weight // by their names, and by all that these end with at a dot
}

// placed finds the places of all weights of a side. Which lists of layers there are the other side
// tells, too: it may hold a part of the model.
func placed(s, other *Side) shelf {
	isPost := func(t tensor.Named) bool { return strings.Contains(t.Name, "post_ffw_norm") }
	isSandwich := slices.ContainsFunc(s.Tensors, isPost)
	lists := map[string]bool{}
	for _, t := range slices.Concat(s.Tensors, other.Tensors) {
		if m := inList.FindStringSubmatch(match.Key(t.Name)); m != nil {
			lists[m[1][:min(len(m[1]), 3)]] = true
		}
	}
	var all []*weight
	out := shelf{map[string]*weight{}, map[string][]*weight{}}
	for i, t := range s.Tensors {
		w := place(t, isSandwich, lists["enc"] && lists["dec"])
		w.number, all = i, append(all, w)
		for end, more := w.name, true; more; _, end, more = strings.Cut(end, ".") {
			out.ends[end] = append(out.ends[end], w)
		}
	}
	byKey := grouped(all, (*weight).key)
	for _, w := range all {
		if w.at = w.key(); len(byKey[w.at]) > 1 {
			w.at = w.name
		}
		out.at[w.at] = w
	}
	return out
}

// all lists the weights in order, left those that have no partner yet.
func (s shelf) all() []*weight {
	return slices.SortedFunc(maps.Values(s.at), func(a, b *weight) int { return strings.Compare(a.at, b.at) })
}

func (s shelf) left() []*weight {
	return slices.DeleteFunc(s.all(), func(w *weight) bool { return w.taken })
}

// find returns the weight left with a name, or the only one whose name ends with it at a dot.
func (s shelf) find(name string) *weight {
	found := slices.DeleteFunc(slices.Clone(s.ends[name]), func(w *weight) bool { return w.taken })
	if i := slices.IndexFunc(found, func(w *weight) bool { return w.name == name }); i >= 0 {
		return found[i]
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// unjudged are buffers that engines calculate by themselves.
var unjudged = regexp.MustCompile(`(?i)(inv_freq|position_ids|token_type_ids|masked_bias|attn\.bias|` +
	`rope_freqs\.weight|rotary_emb\..*|num_batches_tracked|cached_(cos|sin)|(cos|sin)_cached)$`)
