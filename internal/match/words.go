package match

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// words are what a layer's name says: the meanings of the words of its part after the number of the
// block.
type words []string

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
		"head logits unembed classifier lm lmhead vocabulary",
	} {
		kind, _, _ := strings.Cut(list, " ")
		for word := range strings.FieldsSeq(list) {
			of[word] = kind
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
	for _, word := range split(tail) {
		if kind := cmp.Or(meanings[word], word); !slices.Contains(w, kind) {
			w = append(w, kind)
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

// affinity is the share of what two names say that they have in common, 0 to 1.
func (w words) affinity(o words) float64 {
	if len(w)+len(o) == 0 {
		return 1 // both are a block
	}
	common := len(keep(w, func(k string) bool { return slices.Contains(o, k) }))
	return float64(common) / float64(len(w)+len(o)-common)
}
