package report

import (
	"slices"
	"strings"
	"unicode"
)

// Component is the part of a model that a layer belongs to, by its name: statistics are grouped and
// points are coloured by it.
type Component string

// The components, in the order in which they are listed.
const (
	Attention Component = "attention"
	MLP       Component = "mlp"
	Norm      Component = "norm"
	Embedding Component = "embedding"
	Head      Component = "head"
	Other     Component = "other" // blocks, whole models and what no word tells
)

// Components are all of them.
var Components = []Component{Attention, MLP, Norm, Embedding, Head, Other}

// words tell a component; those of one row are tried before those of the next.
var words = []struct {
	component Component
	parts     []string // found anywhere in an element of the name: "input_layernorm"
	words     []string // found as a word of it: "q_proj" has q and proj
}{
	{Norm, []string{"norm"}, []string{"ln"}},
	{Attention, []string{"attn", "attention", "rotary", "qkv"}, []string{"rope", "query", "key", "value", "softmax"}},
	{Embedding, []string{"embed"}, []string{"wte", "wpe"}},
	{MLP, nil, []string{"mlp", "ffn", "ff", "feedforward", "intermediate", "expert", "experts", "moe", "fc", "gate",
		"up", "down", "act", "activation", "gelu", "silu"}},
	{Head, nil, []string{"head", "classifier", "pooler", "score", "logits", "unembed"}},
}

// ComponentOf returns the component of a layer. The element nearest to the end of its name that
// says one decides: "layers.0.self_attn.q_norm" is a norm, "layer.3.attention.output.dense"
// attention.
func ComponentOf(layer string) Component {
	layer, _, _ = strings.Cut(layer, "(") // a repeated call
	elements := strings.Split(layer, ".")
	for i := len(elements) - 1; i >= 0; i-- {
		if c := componentOf(elements[i]); c != Other {
			return c
		}
		if i > 0 && elements[i] == "output" && isNumber(elements[i-1]) {
			return MLP // the second half of a BERT block has no other name
		}
	}
	return Other
}

func componentOf(element string) Component {
	lower, split := strings.ToLower(element), splitWords(element)
	if slices.Contains(split, "proj") && slices.ContainsFunc(split,
		func(w string) bool { return len(w) == 1 && strings.Contains("qkvo", w) }) {
		return Attention // q_proj
	}
	if strings.Contains(lower, "feed_forward") {
		return MLP
	}
	for _, w := range words {
		if slices.ContainsFunc(w.parts, func(p string) bool { return strings.Contains(lower, p) }) ||
			slices.ContainsFunc(split, func(x string) bool { return slices.Contains(w.words, x) }) {
			return w.component
		}
	}
	return Other
}

// splitWords is "gate_up_proj", "GELUActivation2" in lower-case words without digits.
func splitWords(s string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end() // camelCase, and the last capital of GELUActivation
		}
		word = append(word, r)
	}
	end()
	return out
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
