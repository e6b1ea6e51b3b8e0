package match

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// roleOf is the role of a port. What was saved by hand is joined as an output is.
func roleOf(port string) label.Role {
	if r := label.RoleOf(port); r != label.RoleTap {
		return r
	}
	return label.RoleOutput
}

// mainOutputs are the names of the one output that a layer is about, the usual first.
var mainOutputs = []string{"output", "output_0", "output_logits", "output_last_hidden_state", "output_sample", "tap"}

// mainOutput picks the output that a layer is about: by its name, or a named one because there is no other. −1 if there is none.
func (s *side) mainOutput(ports []int) int {
	var outputs []int
	for _, i := range ports {
		if roleOf(s.ports[i].Port) == label.RoleOutput {
			outputs = append(outputs, i)
		}
	}
	for _, name := range mainOutputs {
		for _, i := range outputs {
			if s.ports[i].Port == name {
				return i
			}
		}
	}
	if len(outputs) == 1 && label.Position(s.ports[outputs[0]].Port) < 0 {
		return outputs[0]
	}
	return -1
}

func (s *side) withRole(ports []int, r label.Role) []int {
	var out []int
	for _, i := range ports {
		if roleOf(s.ports[i].Port) == r {
			out = append(out, i)
		}
	}
	return out
}

// class is what dtypes must share to be the same thing: floats are computed in any precision, integers mean themselves.
type class int

func classOf(d tensor.DType) class {
	if d.IsFloat() {
		return class(tensor.F32)
	}
	return class(d)
}

// sameKind is weaker than one class: integers of any width and bools by their kind.
func sameKind(a, b tensor.DType) bool {
	return a.Kind() == b.Kind() && (a.Kind() != tensor.KindInt || a.Signed() == b.Signed())
}

// fitPorts finds the layout of two ports whose dtypes are of one kind.
func (m *matcher) fitPorts(g, a Port, ok allow) (layout, bool) {
	if !sameKind(g.DType, a.DType) {
		return layout{}, false
	}
	integer := g.DType.Kind() == tensor.KindInt && !isMask(g)
	return m.lay.fit(g.Shape, a.Shape, integer, ok)
}

func isMask(p Port) bool { return strings.Contains(p.Port, "mask") }

// Named inputs that are never paired by dtype and shape: the other engine has no such thing, or lays it out in its own way.
var ownInputs = regexp.MustCompile(`^input_(position_ids|cache_position|position_embeddings|past_key_values?|rotary|freqs|cos|sin|cu_seqlens)`)

// Named inputs that a layer is about: they go before others of the same dtype and shape. Other named integers are never paired by dtype and
// shape, as
// token types and positions look alike.
var mainInputs = []string{"input_input_ids", "input_hidden_states", "input_inputs_embeds", "input_sample", "input_x", "input_input",
	"input_pixel_values"}

// inputOrder sorts inputs by their position, the named ones behind, those that a layer is about first.
func (s *side) inputOrder(a, b int) int {
	weight := func(i int) int {
		port := s.ports[i].Port
		if n := label.Position(port); n >= 0 {
			return n
		}
		if k := slices.Index(mainInputs, port); k >= 0 {
			return -len(mainInputs) + k
		}
		return 1 << 30
	}
	if d := weight(a) - weight(b); d != 0 {
		return d
	}
	return s.rank[a] - s.rank[b]
}
