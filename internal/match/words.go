package match

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/label/module"
)

// words are what a layer's name says: the words of its part after the number of the block, the
// last segment first.
type words struct {
	role  string   // what the last segment is known to be: see lastWords; "" if that is not known
	kinds []string // what all words mean
}

// lastWords are what a last segment may be. Two layers of two roles are not one.
var lastWords = []struct {
	role  string
	names module.Names
}{
	{"q", module.Query}, {"k", module.Key}, {"v", module.Value}, {"gate", module.Gate}, {"up", module.Up},
	{"qkv", module.FusedQKV}, {"gate_up", module.FusedGateUp}, {"q_norm", module.QueryNorm}, {"k_norm", module.KeyNorm},
}

// meanings are words of the field that mean the same.
var meanings = func() map[string]string {
	of := map[string]string{}
	for _, list := range []string{
		"norm ln layernorm rmsnorm lnorm",
		"attn attention selfattn selfattention self sa mha mixer mix att",
		"mlp ffn ff feedforward feed mlps intermediate",
		"out o oproj wo proj dense cproj outproj",
		"up fc1 cfc expand wi fc w3 lin1 linear1",
		"down fc2 contract w2 lin2 linear2",
		"gate w1",
		"q query queries wq",
		"k key keys wk",
		"v value values wv",
		"embed wte tok token tokens embedding embeddings emb vocab lookup",
		"pos wpe position positions positional",
		"head logits unembed classifier lm lmhead vocabulary",
		"block layer blocks layers h stage",
		"act activation gelu silu relu actfn",
		"first pre before input 1",
		"last post second after final 2 f",
	} {
		words := strings.Fields(list)
		for _, word := range words {
			of[word] = words[0]
		}
	}
	return of
}()

// wordsOf reads a name.
func wordsOf(name string, runs []run) words {
	tail := name
	if len(runs) > 0 {
		tail = strings.TrimLeft(name[runs[0].to:], "._-/")
	}
	var w words
	last := tail[strings.LastIndexByte(tail, '.')+1:]
	for _, r := range lastWords {
		if slices.Contains(r.names.Folded(), module.Fold(last)) {
			w.role = r.role
			break
		}
	}
	for _, word := range split(tail) {
		kind := meanings[word]
		if kind == "" {
			kind = word
		}
		if !slices.Contains(w.kinds, kind) {
			w.kinds = append(w.kinds, kind)
		}
	}
	return w
}

var camel = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)

// split cuts a name into words: at dots, underscores and dashes, and before capitals.
func split(name string) []string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.FieldsFunc(strings.ToLower(camel.ReplaceAllString(name, "$1 $2")), between)
}

// contradict reports whether two names are known to mean two things.
func (w words) contradict(o words) bool { return w.role != "" && o.role != "" && w.role != o.role }

// affinity is the share of what two names say that they have in common, 0 to 1.
func (w words) affinity(o words) float64 {
	common := 0
	for _, k := range w.kinds {
		if slices.Contains(o.kinds, k) {
			common++
		}
	}
	all := len(w.kinds) + len(o.kinds) - common
	if all == 0 {
		return 1 // both are a block
	}
	return float64(common) / float64(all)
}
