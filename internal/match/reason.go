package match

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Why a layer is found on one side only, by the folded last segment of its label. They are said of layers that were not joined.
var layerReasons = []struct {
	name *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`^(.*dropout\d*|drop\d*|droppath\d*)$`), "dropout does nothing in inference: %s does not call it as a layer"},
	{regexp.MustCompile(`^(.*act|.*actfn|.*activation|.*activationfn|gelu|silu|relu|tanh|sigmoid)$`),
		"an activation: %s does not call it as a layer"},
	{regexp.MustCompile(`^(rotaryemb.*|rope|rotary|rotarypos.*)$`), "rotary embeddings: %s does not compute them in a layer"},
	{regexp.MustCompile(`^(identity|flatten)$`), "it computes nothing: %s does not call it as a layer"},
	{regexp.MustCompile(`^(topk|greedy|minp|token|rejection|fused)?.*sampler\d*$`), "a sampler: %s does not sample in a layer"},
}

// Why an input or output of a joined layer is found on one side only, by its port.
var portReasons = []struct {
	name *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`^input_position_ids|^input_cache_position`), "positions: %s counts them by itself"},
	{regexp.MustCompile(`^input_(position_embeddings|rotary|freqs|cos|sin)`),
		"rotary embeddings: %s computes or lays them out in its own way"},
	{regexp.MustCompile(`^(in|out)put_past_key_value`), "the key-value cache, which each engine lays out in its own way"},
	{regexp.MustCompile(`mask`), "an attention mask: %s has none of this shape here"},
	{regexp.MustCompile(`^output_pooler_output`), "a pooled output, which is paired by its name only"},
	{regexp.MustCompile(`^output_(attentions|hidden_states)`), "%s does not return it"},
}

// reason says why a port of s has no partner; "" if that is not known.
func (p *pairing) reason(s *side, i int) string {
	n, port, other := s.nodeOf[i], s.ports[i], p.actual
	side := 0
	if s == p.actual {
		side, other = 1, p.golden
	}
	if why := p.why[side][i]; why != "" {
		return why
	}
	if !slices.Contains(other.steps, s.passOf[i].step) {
		return fmt.Sprintf("the %s run has no step %s", other.name, s.passOf[i].step)
	}
	j := p.joinOf(n)
	if j == nil {
		return p.layerReason(s, n)
	}
	if !partnerCalled(p, j, s.passOf[i]) {
		return fmt.Sprintf("call %d: the %s run calls this layer less often", s.passOf[i].call, other.name)
	}
	for _, r := range portReasons {
		if r.name.MatchString(port.Port) {
			return about(r.text, other)
		}
	}
	if why := p.shapeReason(s, port, j); why != "" {
		return why
	}
	return p.recordedReason(s, other, port, j, s.passOf[i])
}

// recordedReason is what can be said when nothing else can: what the other side did not record.
func (p *pairing) recordedReason(s, other *side, port Port, j *joined, in pass) string {
	role, what := roleOf(port.Port), map[label.Role]string{label.RoleInput: "input", label.RoleOutput: "output", label.RoleComputed: "replaced input"}
	has := func(o Port) bool { return roleOf(o.Port) == role }
	if !slices.ContainsFunc(other.ports, has) {
		return fmt.Sprintf("the %s run recorded no %ss", other.name, what[role])
	}
	partners := j.actual
	if s == p.actual {
		partners = j.golden
	}
	for _, n := range partners {
		if len(other.withRole(n.passes[in], role)) > 0 {
			return fmt.Sprintf("the %s layer has no more %ss of this dtype and shape", other.name, what[role])
		}
	}
	return fmt.Sprintf("the %s run recorded no %s of this layer", other.name, what[role])
}

func about(text string, other *side) string {
	if strings.Contains(text, "%s") {
		return fmt.Sprintf(text, "the "+other.name)
	}
	return text
}

func partnerCalled(p *pairing, j *joined, in pass) bool {
	return portsOf(j.golden, in) != nil && portsOf(j.actual, in) != nil
}

// layerReason says why a whole layer has no partner.
func (p *pairing) layerReason(s *side, n *node) string {
	why, ok := p.whyLayer[n]
	if !ok {
		why = p.findLayerReason(s, n)
		p.whyLayer[n] = why
	}
	return why
}

func (p *pairing) findLayerReason(s *side, n *node) string {
	other := p.golden
	if s == p.golden {
		other = p.actual
	}
	last := n.segs[len(n.segs)-1]
	for _, r := range layerReasons {
		if r.name.MatchString(last) {
			return about(r.text, other)
		}
	}
	if onlyWrappers(n.segs) {
		return fmt.Sprintf("a model inside the model: the %s run does not call it as a layer", other.name)
	}
	if slices.Contains([]string{"gateproj", "upproj"}, last) && p.joinedParent(s, n) {
		return fmt.Sprintf("gate and up: the %s computes them inside of %s", other.name, label.Parent(n.label))
	}
	for _, f := range fusions {
		if slices.Contains(f.fused, last) && p.anyChildJoined(s, label.Parent(n.label), f) {
			return "fused from projections that were compared one by one"
		}
	}
	if strings.Contains(n.label, "pooler") {
		return fmt.Sprintf("a pooler: the %s run has none", other.name)
	}
	return ""
}

func (p *pairing) joinedParent(s *side, n *node) bool {
	other := s.named[label.Parent(n.label)]
	return other != nil && p.joinOf(other) != nil
}

func (p *pairing) anyChildJoined(s *side, layer string, f fusion) bool {
	return slices.ContainsFunc(s.nodes, func(n *node) bool {
		return label.Parent(n.label) == layer && p.joinOf(n) != nil &&
			slices.ContainsFunc(f.parts, func(names []string) bool { return slices.Contains(names, n.segs[len(n.segs)-1]) })
	})
}

// shapeReason goes by dtype and shape: what MAX hands to its layers beside the activations.
func (p *pairing) shapeReason(s *side, port Port, j *joined) string {
	integer := port.DType.Kind() == tensor.KindInt
	rank := len(port.Shape)
	switch r := roleOf(port.Port); {
	case r == label.RoleOutput && rank >= 3 && p.attentionWeights(s, port, j):
		return "attention weights, which only one side returns"
	case r == label.RoleOutput:
		return ""
	case integer && rank == 0:
		return "a number that is no activation: the layer's index, usually"
	case port.DType == tensor.U32 && rank == 1:
		return "row offsets of the ragged batch"
	case integer && rank == 1 && port.Shape[0] == 1:
		return "how many logits are wanted, or another number for the whole batch"
	case port.DType.IsFloat() && rank == 2 && s == p.actual && !j.root:
		return "a table of the whole model, rotary frequencies usually"
	case rank == 4 && port.Shape[1] == 1 && port.DType.IsFloat():
		return "an attention mask, by its shape"
	}
	return ""
}

// attentionWeights reports whether an output has a row per head and token and is not the layer's first.
func (p *pairing) attentionWeights(s *side, port Port, j *joined) bool {
	last := j.golden[0].segs[len(j.golden[0].segs)-1]
	return label.Position(port.Port) > 0 && (strings.Contains(last, "att") || last == "self") && len(port.Shape) >= 3
}
