package match

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// pairFused pairs a fused projection of one side with the several of the other: outputs by columns, inputs with the one input.
func (p *pairing) pairFused(j *joined) {
	lead := j.golden[0]
	for _, pass := range p.golden.sortedPasses(lead) {
		golden, actual := portsOf(j.golden, pass), portsOf(j.actual, pass)
		if golden == nil || actual == nil {
			continue
		}
		if len(j.golden) > 1 && len(j.actual) > 1 {
			continue // refused when the rule was read
		}
		if len(j.golden) > 1 {
			p.splitActual(j, golden, actual[0])
		} else {
			p.joinActual(j, golden[0], actual)
		}
	}
}

// portsOf gives the ports of each node in a pass; nil if a node has none.
func portsOf(nodes []*node, in pass) [][]int {
	var out [][]int
	for _, n := range nodes {
		if n.passes[in] == nil {
			return nil
		}
		out = append(out, n.passes[in])
	}
	return out
}

// mains gives the first output of each, nil if one has none.
func (s *side) mains(ports [][]int) []int {
	var out []int
	for _, ps := range ports {
		i := s.mainOutput(ps)
		if i < 0 {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// splitActual takes the columns of each golden part from the one output of the candidate.
func (p *pairing) splitActual(j *joined, golden [][]int, fused []int) {
	parts, whole := p.golden.mains(golden), p.actual.mainOutput(fused)
	if parts != nil && whole >= 0 {
		shape := p.actual.ports[whole].Shape
		from := 0
		for _, g := range parts {
			gp := p.golden.ports[g]
			axis, width, ok := j.cut(gp.Shape, shape)
			if !ok || p.width(j, parts, shape) != shape[axis] {
				p.problem(g, whole)
				p.pairs[len(p.pairs)-1].Problem = p.widths(p.golden, parts, p.actual.ports[whole])
				p.pairs[len(p.pairs)-1].Shared = true
				continue
			}
			slice := Op{Kind: Slice, Axis: axis, From: from, To: from + width}
			lay, fits := layout{}, false
			if sameKind(gp.DType, p.actual.ports[whole].DType) {
				lay, fits = p.lay.fit(gp.Shape, with(shape, axis, width), false, allow{reshape: p.opt.AllowReshape})
			}
			if !fits {
				p.problem(g, whole)
			} else {
				lay.actual = append(View{slice}, lay.actual...)
				p.add(g, whole, lay, fmt.Sprintf("columns %d to %d of candidate %s", from, from+width-1, p.actual.ports[whole].Layer))
			}
			p.pairs[len(p.pairs)-1].Shared = true
			from += width
		}
	}
	for _, ports := range golden {
		in := p.actual.withRole(fused, label.RoleInput)
		l := layerPairing{pairing: p, ok: allow{reshape: p.opt.AllowReshape}}
		at := len(p.pairs)
		l.inputs(p.golden.withRole(ports, label.RoleInput), in)
		for i := range p.pairs[at:] {
			p.pairs[at+i].Shared = true
			p.pairs[at+i].Note = join("the input of candidate "+p.actual.ports[in[0]].Layer, p.pairs[at+i].Note)
		}
	}
	l := layerPairing{pairing: p, ok: allow{reshape: p.opt.AllowReshape}}
	l.computed(p.golden.withRole(golden[0], label.RoleInput), p.actual.withRole(fused, label.RoleComputed))
}

// joinActual puts the candidate's outputs side by side. Its parts take one input, so that of the first stands for all.
func (p *pairing) joinActual(j *joined, fused []int, actual [][]int) {
	whole, parts := p.golden.mainOutput(fused), p.actual.mains(actual)
	if whole >= 0 && parts != nil {
		p.joinOutputs(j, whole, parts)
	}
	l := layerPairing{pairing: p, ok: allow{reshape: p.opt.AllowReshape}}
	l.inputs(p.golden.withRole(fused, label.RoleInput), p.actual.withRole(actual[0], label.RoleInput))
	l.computed(p.golden.withRole(fused, label.RoleInput), p.actual.withRole(actual[0], label.RoleComputed))
	for _, ports := range actual[1:] {
		for _, i := range p.actual.withRole(ports, label.RoleInput) {
			p.why[1][i] = "the same input as that of " + p.actual.ports[actual[0][0]].Layer + ", which is compared"
		}
		for _, i := range p.actual.withRole(ports, label.RoleComputed) {
			p.why[1][i] = "the same input as that of " + p.actual.ports[actual[0][0]].Layer + ", which is compared"
		}
	}
}

func (p *pairing) joinOutputs(j *joined, whole int, parts []int) {
	gp := p.golden.ports[whole]
	var shapes [][]int
	var labels []string
	for _, a := range parts {
		ap := p.actual.ports[a]
		shapes = append(shapes, ap.Shape)
		labels = append(labels, ap.Layer)
		p.usedActual[a] = true
	}
	p.usedGolden[whole] = true
	pair := Pair{Golden: []int{whole}, Actual: parts, Note: "candidate " + strings.Join(labels, ", ") + " side by side"}
	view := View{{Kind: Concat, Axis: j.axis()}}
	joined, err := view.Shape(shapes...)
	lay, fits := layout{}, false
	if err == nil && p.oneKind(gp.DType, parts) {
		lay, fits = p.lay.fit(gp.Shape, joined, false, allow{reshape: p.opt.AllowReshape})
	}
	if fits {
		pair.GoldenView, pair.ActualView, pair.Shape, pair.RowMask = lay.golden, append(view, lay.actual...), lay.shape, lay.rowMask
		pair.Note = join(pair.Note, lay.note)
	} else {
		pair.Problem = p.widths(p.actual, parts, gp)
	}
	p.pairs = append(p.pairs, pair)
}

// oneKind reports whether the parts can be joined, which takes one dtype, and compared.
func (p *pairing) oneKind(d tensor.DType, parts []int) bool {
	first := p.actual.ports[parts[0]].DType
	for _, a := range parts {
		if p.actual.ports[a].DType != first {
			return false
		}
	}
	return sameKind(d, first)
}

// axis of a join or split; −1 is the last.
func (j *joined) axis() int {
	if j.rule != nil && j.rule.Axis != nil {
		return *j.rule.Axis
	}
	return -1
}

// cut gives the axis of the whole that is cut, and the width that a part has there. A part may have a batch axis in front that the whole
// has not, and
// the reverse, so axes are counted from the end.
func (j *joined) cut(part, whole []int) (axis, width int, ok bool) {
	axis = j.axis()
	if axis < 0 {
		axis += len(whole)
	}
	behind := len(whole) - axis
	if axis < 0 || axis >= len(whole) || behind > len(part) {
		return 0, 0, false
	}
	return axis, part[len(part)-behind], true
}

// width sums the widths of all parts.
func (p *pairing) width(j *joined, parts []int, whole []int) int {
	sum := 0
	for _, i := range parts {
		_, w, _ := j.cut(p.golden.ports[i].Shape, whole)
		sum += w
	}
	return sum
}

func (p *pairing) widths(s *side, parts []int, whole Port) string {
	var text []string
	for _, i := range parts {
		text = append(text, tensor.FormatShape(s.ports[i].Shape))
	}
	return fmt.Sprintf("the %s shapes %s do not add up to %s of %s", s.name, strings.Join(text, ", "), tensor.FormatShape(whole.Shape),
		whole.Layer)
}
