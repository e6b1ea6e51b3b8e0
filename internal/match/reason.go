package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// layerReasons say why a layer is found on one side only, by the folded last segment of its label.
// They are said of layers that were not joined.
var layerReasons = []layerReason{
	{"*drop# *dropout# *droppath#", "dropout does nothing in inference: %s does not call it as a layer", true},
	{"*act *actfn *activation *activationfn gelu silu relu tanh sigmoid",
		"an activation: %s does not call it as a layer", false},
	{"rotaryemb* rope rotary rotarypos*", "rotary embeddings: %s does not compute them in a layer", false},
	{"identity flatten", "it computes nothing: %s does not call it as a layer", true},
	{"*sampler#", "a sampler: %s does not sample in a layer", false},
}

type layerReason struct {
	names, text string
	idle        bool // it returns what it was given
}

// kind is an index into layerReasons, −1 if none fits.
func (n *node) kind() int {
	return slices.IndexFunc(layerReasons, func(r layerReason) bool { return like(n.lastSegment(), r.names) })
}

// portReasons say why an input or output of a joined layer is found on one side only. What is own is
// never paired by dtype and shape: the other engine has no such thing, or lays it out in its own way.
var portReasons = []portReason{
	{"input_position_ids* input_cache_position*", "positions: %s counts them by itself", true},
	{"input_position_embeddings* input_rotary* input_freqs* input_cos* input_sin*",
		"rotary embeddings: %s computes or lays them out in its own way", true},
	{"input_past_key_value* output_past_key_value*",
		"the key-value cache, which each engine lays out in its own way", true},
	{"input_cu_seqlens*", "", true},
	{"*mask*", "an attention mask: %s has none of this shape here", false},
	{"output_pooler_output*", "a pooled output, which is paired by its name only", false},
	{"output_attentions* output_hidden_states*", "%s does not return it", false},
}

type portReason struct {
	names, text string
	own         bool
}

// like reports whether a name is one of some patterns: words with a * for anything at their ends, or
// a # for a number at the end.
func like(name, patterns string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		name := name
		if p, ok := strings.CutSuffix(pattern, "#"); ok {
			name, pattern = strings.TrimRight(name, "0123456789"), p
		}
		end, before := strings.CutPrefix(pattern, "*")
		word, behind := strings.CutSuffix(end, "*")
		switch {
		case before && behind && strings.Contains(name, word),
			before && !behind && strings.HasSuffix(name, word),
			behind && !before && strings.HasPrefix(name, word),
			name == word:
			return true
		}
	}
	return false
}

// ownInput reports whether an input is one engine's own.
func ownInput(port string) bool {
	return slices.ContainsFunc(portReasons, func(r portReason) bool { return r.own && like(port, r.names) })
}

// about puts the side that lacks something into a text.
func about(text string, other *side) string { return strings.ReplaceAll(text, "%s", "the "+other.name) }

// reason says why a port has no partner, "" if that is not known, and whether two engines that
// compute the same may well differ so.
func (m *matcher) reason(port *port) (why string, usual bool) {
	n, in := port.call.node, port.call.pass
	other := n.side.other
	if port.why != "" {
		return port.why, false
	}
	if !other.hasStep[in.step] {
		return fmt.Sprintf("the %s run has no step %s", other.name, in.step), false
	}
	j := n.join
	if j == nil {
		why = n.reason()
		return why, why != "" && !n.root
	}
	if callsIn(j.golden, in) == nil || callsIn(j.actual, in) == nil {
		return fmt.Sprintf("call %d: the %s run calls this layer less often", in.call, other.name), false
	}
	for _, r := range portReasons {
		if r.text != "" && like(port.name, r.names) {
			return about(r.text, other), true
		}
	}
	if why := m.shapeReason(port, j); why != "" {
		return why, true
	}
	return recordedReason(port, other, slices.Concat(j.golden, j.actual)), false
}

// recordedReason is what can be said when nothing else can: what the other side did not record.
func recordedReason(port *port, other *side, joined []*node) string {
	what := port.role.String()
	if port.role == label.RoleComputed {
		what = "replaced input"
	}
	if !other.recorded[port.role] {
		return fmt.Sprintf("the %s run recorded no %ss", other.name, what)
	}
	for _, n := range joined {
		if n.side == other && len(n.at(port.call.pass).ports[port.role]) > 0 {
			return fmt.Sprintf("the %s layer has no more %ss of this dtype and shape", other.name, what)
		}
	}
	return fmt.Sprintf("the %s run recorded no %s of this layer", other.name, what)
}

// reason says why a whole layer has no partner.
func (n *node) reason() string {
	other, last, parent := n.side.other, n.lastSegment(), label.Parent(n.label)
	if n.why != "" {
		return n.why
	}
	if kind := n.kind(); kind >= 0 {
		return about(layerReasons[kind].text, other)
	}
	if n.root {
		return fmt.Sprintf("a model inside the model: the %s run does not call it as a layer", other.name)
	}
	if around := n.side.named[parent]; like(last, "gateproj upproj") && around != nil && around.join != nil {
		return fmt.Sprintf("gate and up: the %s computes them inside of %s", other.name, parent)
	}
	for _, f := range fusions {
		if slices.Contains(f.whole, last) && slices.ContainsFunc(n.side.children[parent], func(n *node) bool {
			return n.join != nil && slices.Contains(slices.Concat(f.parts...), n.lastSegment())
		}) {
			return "fused from projections that were compared one by one"
		}
	}
	if strings.Contains(n.label, "pooler") {
		return fmt.Sprintf("a pooler: the %s run has none", other.name)
	}
	return ""
}

// shapeReason goes by dtype and shape: what MAX hands to its layers beside the activations.
func (m *matcher) shapeReason(port *port, j *joined) string {
	integer := port.dtype.Kind() == tensor.KindInt
	rank := len(port.shape)
	switch {
	case port.role == label.RoleOutput && rank >= 3 && label.Position(port.name) > 0 && isAttention(j.golden[0]):
		return "attention weights, which only one side returns"
	case port.role == label.RoleOutput:
		return ""
	case integer && rank == 0:
		return "a number that is no activation: the layer's index, usually"
	case port.dtype == tensor.U32 && rank == 1:
		return "row offsets of the ragged batch"
	case integer && rank == 1 && port.shape[0] == 1:
		return "how many logits are wanted, or another number for the whole batch"
	case port.dtype.IsFloat() && rank == 2 && port.call.node.side == m.actual && !j.root:
		return "a table of the whole model, rotary frequencies usually"
	case rank == 4 && port.shape[1] == 1 && port.dtype.IsFloat():
		return "an attention mask, by its shape"
	}
	return ""
}

func isAttention(n *node) bool {
	return strings.Contains(n.lastSegment(), "att") || n.lastSegment() == "self"
}
