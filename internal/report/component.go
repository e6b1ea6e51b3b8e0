package report

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
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

// words tell the component of an element of a name, in the order in which they are tried. Short ones must be words of
// it: "q_proj" has q and proj.
var words = []struct {
	component Component
	pattern   *regexp.Regexp
}{
	{Norm, regexp.MustCompile(`norm|(^|_)ln(_|\d|$)`)},
	{Attention, regexp.MustCompile(`attn|attention|rotary|qkv|rope|query|softmax|(^|_)(key|value|[qkvo]_?proj)(_|$)`)},
	{Embedding, regexp.MustCompile(`embed|(^|_)w[tp]e(_|$)`)},
	{MLP, regexp.MustCompile(`mlp|ffn|feed_?forward|intermediate|expert|activation|gelu|silu|(^|_)(ff|moe|fc|gate|up|down|act)\d*(_|$)`)},
	{Head, regexp.MustCompile(`(^|_)(head|classifier|pooler|score|logits)(_|$)`)},
}

// ComponentOf returns the component of a layer. The element nearest to the end of its name that
// says one decides: "layers.0.self_attn.q_norm" is a norm, "layer.3.attention.output.dense"
// attention.
func ComponentOf(layer string) Component {
	elements := strings.Split(strings.ToLower(label.Name(layer)), ".")
	for i, element := range slices.Backward(elements) {
		for _, w := range words {
			if w.pattern.MatchString(element) {
				return w.component
			}
		}
		if i > 0 && element == "output" && label.IsNumber(elements[i-1]) {
			return MLP // the second half of a BERT block has no other name
		}
	}
	return Other
}
