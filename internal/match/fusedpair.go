package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// pairFused pairs a fused projection of one side with the several of the other: outputs by columns,
// inputs with the one input.
func (m *matcher) pairFused(j *joined) {
	for _, c := range j.golden[0].calls {
		golden, actual := callsIn(j.golden, c.pass), callsIn(j.actual, c.pass)
		switch {
		case golden == nil || actual == nil:
		case len(golden) > 1:
			m.splitActual(j, golden, actual[0])
		default:
			m.joinActual(j, golden[0], actual)
		}
	}
}

// callsIn returns the call of each node in a pass; nil if one was not called.
func callsIn(nodes []*node, pass pass) []*call {
	calls := collect(nodes, func(n *node) *call { return n.at(pass) })
	if slices.Contains(calls, nil) {
		return nil
	}
	return calls
}

// mains returns the first output of each call; nil if one has none.
func mains(calls []*call) []*port {
	outputs := collect(calls, (*call).main)
	if slices.Contains(outputs, nil) {
		return nil
	}
	return outputs
}

// splitActual takes the columns of each golden part from the one output of the candidate.
func (m *matcher) splitActual(j *joined, golden []*call, fused *call) {
	if parts, whole := mains(golden), fused.main(); parts != nil && whole != nil {
		for i, view := range j.slices(parts, whole.shape) {
			note := fmt.Sprintf("part %d of %d of candidate %s", i+1, len(parts), fused.layer)
			m.viewed(parts[i], []*port{whole}, view, note).Shared = true
		}
	}
	for _, g := range golden {
		at := len(m.pairs)
		m.pairing(j).inputs(g.ports[label.RoleInput], fused.ports[label.RoleInput])
		for _, pair := range m.pairs[at:] {
			pair.Shared = true
			pair.Note = join("the input of candidate "+fused.layer, pair.Note)
		}
	}
	m.pairing(j).computed(golden[0].ports[label.RoleInput], fused.ports[label.RoleComputed])
}

// joinActual puts the candidate's outputs side by side. Its parts take one input, so that of the
// first stands for all.
func (m *matcher) joinActual(j *joined, fused *call, actual []*call) {
	if whole, parts := fused.main(), mains(actual); whole != nil && parts != nil {
		layers := collect(actual, func(c *call) string { return c.layer })
		m.viewed(whole, parts, layout.View{{Kind: layout.Concat, Axis: j.axis()}}, "candidate "+strings.Join(layers, ", ")+" side by side")
	}
	c, inputs, first := m.pairing(j), fused.ports[label.RoleInput], actual[0]
	c.inputs(inputs, first.ports[label.RoleInput])
	c.computed(inputs, first.ports[label.RoleComputed])
	for _, other := range actual[1:] {
		for _, port := range slices.Concat(other.ports[label.RoleInput], other.ports[label.RoleComputed]) {
			port.why = "the same input as that of " + first.layer + ", which is compared"
		}
	}
}

// viewed pairs a golden port with what a view makes of one of the candidate's or several; nil is no
// view that fits.
func (m *matcher) viewed(g *port, actual []*port, view layout.View, note string) *paired {
	alike := !slices.ContainsFunc(actual, func(a *port) bool { return a.dtype != actual[0].dtype }) // concat needs one dtype
	shape, err := view.Shape(collect(actual, func(a *port) []int { return a.shape })...)
	if view != nil && err == nil && alike && sameKind(g, actual[0]) {
		if f, fits := m.padding.Fit(g.shape, shape, layout.Allow{Reshape: m.opt.AllowReshape}); fits {
			f.Actual = append(view, f.Actual...)
			return m.add(g, actual, f, note)
		}
	}
	pair := m.add(g, actual, layout.Fit{}, note)
	pair.Problem = m.whyNot(g, actual[0])
	return pair
}

// axis of a join or split; −1 is the last.
func (j *joined) axis() int {
	if j.rule != nil && j.rule.Axis != nil {
		return *j.rule.Axis
	}
	return -1
}

// slices returns the views that cut a whole into parts, nil for each if their widths do not add up. A
// part may have a batch axis in front that the whole has not, and the reverse, so axes are counted from
// the end.
func (j *joined) slices(parts []*port, whole []int) []layout.View {
	views, none := make([]layout.View, len(parts)), make([]layout.View, len(parts))
	axis, to := j.axis(), 0
	if axis < 0 {
		axis += len(whole)
	}
	if axis < 0 || axis >= len(whole) {
		return none
	}
	for i, p := range parts {
		at := len(p.shape) - (len(whole) - axis)
		if at < 0 {
			return none
		}
		from := to
		to += p.shape[at]
		views[i] = layout.View{{Kind: layout.Slice, Axis: axis, From: from, To: to}}
	}
	if to != whole[axis] {
		return none
	}
	return views
}
