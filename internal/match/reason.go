package match

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// reason says why what has such a name is found on one side only. %s is the side that lacks it.
type reason struct {
	names *regexp.Regexp
	text  string
}

func because(names, text string) reason { return reason{regexp.MustCompile(names), text} }

// layerReasons go by the folded last segment of a label. They are said of layers that were not
// joined.
var layerReasons = []reason{
	because(`drop(out|path)?\d*$`, "dropout does nothing in inference: %s does not call it as a layer"),
	because(`act(ivation)?(fn)?$|^(gelu|silu|relu|tanh|sigmoid)$`, "an activation: %s does not call it as a layer"),
	because(`^(rope|rotary|rotary(emb|pos).*)$`, "rotary embeddings: %s does not compute them in a layer"),
	because(`^(identity|flatten)$`, "it computes nothing: %s does not call it as a layer"),
	because(`sampler\d*$`, "a sampler: %s does not sample in a layer"),
}

// portReasons go by the name of an input or output of a joined layer.
var portReasons = []reason{
	because(`^input_(position_ids|cache_position)`, "positions: %s counts them by itself"),
	because(`^input_(position_embeddings|rotary|freqs|cos|sin)`,
		"rotary embeddings: %s computes or lays them out in its own way"),
	because(`^(input|output)_past_key_value`, "the key-value cache, which each engine lays out in its own way"),
	because(`mask`, "an attention mask: %s has none of this shape here"),
	because(`^output_pooler_output`, "a pooled output, which is paired by its name only"),
	because(`^output_(attentions|hidden_states)`, "%s does not return it"),
}

// ownInput matches inputs that are never paired by dtype and shape: the other engine has no such
// thing, or lays it out in its own way.
var ownInput = regexp.MustCompile(
	`^input_(position_ids|cache_position|position_embeddings|rotary|freqs|cos|sin|past_key_value|cu_seqlens)`)

// reasonFor returns the first reason that fits a name, "" if none does.
func reasonFor(name string, reasons []reason, lacks *side) string {
	i := slices.IndexFunc(reasons, func(r reason) bool { return r.names.MatchString(name) })
	if i < 0 {
		return ""
	}
	return strings.ReplaceAll(reasons[i].text, "%s", "the "+lacks.name)
}

// reason says why a port has no partner, "" if that is not known, and whether two engines that
// compute the same may well differ so.
func (m *matcher) reason(port *port) (why string, usual bool) {
	n, in := port.call.node, port.call.pass
	other := n.side.other
	if port.why != "" {
		return port.why, false
	}
	if !slices.Contains(other.steps, in.step) {
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
	if why := cmp.Or(reasonFor(port.name, portReasons, other), m.shapeReason(port, j)); why != "" {
		return why, true
	}
	what := port.role.String()
	if port.role == label.RoleComputed {
		what = "replaced input"
	}
	return fmt.Sprintf("the %s run recorded no %s of this layer that fits", other.name, what), false
}

// reason says why a whole layer has no partner.
func (n *node) reason() string {
	other, last, parent := n.side.other, n.lastSegment(), label.Parent(n.label)
	around, why := n.side.named[parent], cmp.Or(n.why, reasonFor(last, layerReasons, other))
	switch {
	case why != "":
		return why
	case n.root:
		return fmt.Sprintf("a model inside the model: the %s run does not call it as a layer", other.name)
	case around != nil && around.join != nil && (last == "gateproj" || last == "upproj"):
		return fmt.Sprintf("gate and up: the %s computes them inside of %s", other.name, parent)
	case slices.ContainsFunc(fusions, n.fuses):
		return "fused from projections that were compared one by one"
	case strings.Contains(n.label, "pooler"):
		return fmt.Sprintf("a pooler: the %s run has none", other.name)
	}
	return ""
}

// fuses reports whether a layer computes what layers beside it do that have partners.
func (n *node) fuses(f fusion) bool {
	isPart := func(o *node) bool {
		return o.join != nil && slices.Contains(slices.Concat(f.parts...), o.lastSegment())
	}
	return slices.Contains(f.whole, n.lastSegment()) && slices.ContainsFunc(n.side.children[label.Parent(n.label)], isPart)
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
