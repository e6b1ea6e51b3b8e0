package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// pairFused pairs a fused projection of one side with the several of the other: outputs by columns,
// inputs with the one input.
func (p *pairing) pairFused(j *joined) {
	for _, c := range j.golden[0].calls {
		golden, actual := callsIn(j.golden, c.pass), callsIn(j.actual, c.pass)
		switch {
		case golden == nil || actual == nil:
		case len(golden) > 1:
			p.splitActual(j, golden, actual[0])
		default:
			p.joinActual(j, golden[0], actual)
		}
	}
}

// callsIn returns the call of each node in a pass; nil if one was not called.
func callsIn(nodes []*node, in pass) []*call {
	var out []*call
	for _, n := range nodes {
		if n.at[in] == nil {
			return nil
		}
		out = append(out, n.at[in])
	}
	return out
}

// mains returns the first output of each call, nil if one has none.
func mains(calls []*call) []*port {
	var out []*port
	for _, c := range calls {
		if c.main() == nil {
			return nil
		}
		out = append(out, c.main())
	}
	return out
}

// splitActual takes the columns of each golden part from the one output of the candidate.
func (p *pairing) splitActual(j *joined, golden []*call, fused *call) {
	if parts, whole := mains(golden), fused.main(); parts != nil && whole != nil {
		p.splitOutput(j, parts, whole)
	}
	c := p.plain(j)
	for _, g := range golden {
		at := len(p.pairs)
		c.input = map[string]*port{}
		c.inputs(g.ports[label.RoleInput], fused.ports[label.RoleInput])
		for _, pair := range p.pairs[at:] {
			pair.Shared = true
			pair.Note = join("the input of candidate "+pair.actual[0].call.layer, pair.Note)
		}
	}
	c.input = nil
	c.computed(golden[0].ports[label.RoleInput], fused.ports[label.RoleComputed])
}

func (p *pairing) splitOutput(j *joined, parts []*port, whole *port) {
	axis, widths, ok := j.cut(parts, whole.shape)
	from := 0
	for i, g := range parts {
		if !ok {
			pair := p.problem(g, whole)
			pair.Problem, pair.Shared = widthsText("golden", parts, whole), true
			continue
		}
		to := from + widths[i]
		lay, fits := p.fitShapes(g, whole, g.shape, with(whole.shape, axis, widths[i]))
		if !fits {
			p.problem(g, whole).Shared = true
		} else {
			lay.actual = append(View{{Kind: Slice, Axis: axis, From: from, To: to}}, lay.actual...)
			p.add(g, whole, lay, fmt.Sprintf("columns %d to %d of candidate %s", from, to-1, whole.call.layer)).Shared = true
		}
		from = to
	}
}

// joinActual puts the candidate's outputs side by side. Its parts take one input, so that of the
// first stands for all.
func (p *pairing) joinActual(j *joined, fused *call, actual []*call) {
	if whole, parts := fused.main(), mains(actual); whole != nil && parts != nil {
		p.joinOutputs(j, whole, parts)
	}
	c := p.plain(j)
	inputs := fused.ports[label.RoleInput]
	c.inputs(inputs, actual[0].ports[label.RoleInput])
	c.computed(inputs, actual[0].ports[label.RoleComputed])
	for _, other := range actual[1:] {
		for _, port := range slices.Concat(other.ports[label.RoleInput], other.ports[label.RoleComputed]) {
			port.why = "the same input as that of " + actual[0].layer + ", which is compared"
		}
	}
}

func (p *pairing) joinOutputs(j *joined, whole *port, parts []*port) {
	var shapes [][]int
	var labels []string
	oneDType := true // as concat needs it
	for _, a := range parts {
		shapes = append(shapes, a.shape)
		labels = append(labels, a.call.layer)
		oneDType = oneDType && a.dtype == parts[0].dtype
	}
	view := View{{Kind: Concat, Axis: j.axis()}}
	lay, fits := layout{}, false
	if joined, err := view.Shape(shapes...); err == nil && oneDType {
		lay, fits = p.fitShapes(whole, parts[0], whole.shape, joined)
	}
	if fits {
		lay.actual = append(view, lay.actual...)
	}
	pair := p.addAll([]*port{whole}, parts, lay, "candidate "+strings.Join(labels, ", ")+" side by side")
	if !fits {
		pair.Problem = widthsText("candidate", parts, whole)
	}
}

// plain pairs the inputs of a call, for which no rule says how they lie.
func (p *pairing) plain(j *joined) *callPairing {
	return &callPairing{pairing: p, ok: allow{reshape: p.opt.AllowReshape}, join: j, input: map[string]*port{}}
}

// fitShapes finds the layout of parts of two ports, which have these shapes.
func (p *pairing) fitShapes(g, a *port, golden, actual []int) (layout, bool) {
	if !sameKind(g.dtype, a.dtype) {
		return layout{}, false
	}
	return p.lay.fit(golden, actual, false, allow{reshape: p.opt.AllowReshape})
}

// axis of a join or split; −1 is the last.
func (j *joined) axis() int {
	if j.rule != nil && j.rule.Axis != nil {
		return *j.rule.Axis
	}
	return -1
}

// cut returns the axis of the whole that is cut, and the width that each part has there; ok is
// whether they add up. A part may have a batch axis in front that the whole has not, and the
// reverse, so axes are counted from the end.
func (j *joined) cut(parts []*port, whole []int) (axis int, widths []int, ok bool) {
	axis = Op{Axis: j.axis()}.axis(len(whole))
	if axis < 0 || axis >= len(whole) {
		return 0, nil, false
	}
	sum := 0
	for _, p := range parts {
		at := len(p.shape) - (len(whole) - axis)
		if at < 0 {
			return 0, nil, false
		}
		widths = append(widths, p.shape[at])
		sum += p.shape[at]
	}
	return axis, widths, sum == whole[axis]
}

func widthsText(side string, parts []*port, whole *port) string {
	var text []string
	for _, p := range parts {
		text = append(text, tensor.FormatShape(p.shape))
	}
	return fmt.Sprintf("the %s shapes %s do not add up to %s of %s", side, strings.Join(text, ", "),
		tensor.FormatShape(whole.shape), whole.call.layer)
}
