package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
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
		m.splitOutput(j, parts, whole)
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

func (m *matcher) splitOutput(j *joined, parts []*port, whole *port) {
	views := j.slices(parts, whole.shape)
	for i, g := range parts {
		var pair *paired
		if views == nil {
			pair = m.problem(g, whole)
			pair.Problem = widthsText("golden", parts, whole)
		} else if f, fits := m.fitPart(g, whole, views[i], whole.shape); fits {
			note := fmt.Sprintf("columns %d to %d of candidate %s", views[i][0].From, views[i][0].To-1, whole.call.layer)
			pair = m.add(g, []*port{whole}, f, note)
		} else {
			pair = m.problem(g, whole)
		}
		pair.Shared = true
	}
}

// joinActual puts the candidate's outputs side by side. Its parts take one input, so that of the
// first stands for all.
func (m *matcher) joinActual(j *joined, fused *call, actual []*call) {
	if whole, parts := fused.main(), mains(actual); whole != nil && parts != nil {
		m.joinOutputs(j, whole, parts)
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

func (m *matcher) joinOutputs(j *joined, whole *port, parts []*port) {
	layers := collect(parts, func(a *port) string { return a.call.layer })
	shapes := collect(parts, func(a *port) []int { return a.shape })
	mixed := slices.ContainsFunc(parts, func(a *port) bool { return a.dtype != parts[0].dtype })
	f, fits := m.fitPart(whole, parts[0], layout.View{{Kind: layout.Concat, Axis: j.axis()}}, shapes...)
	if mixed { // concat needs one dtype
		f, fits = layout.Fit{}, false
	}
	pair := m.add(whole, parts, f, "candidate "+strings.Join(layers, ", ")+" side by side")
	if !fits {
		pair.Problem = widthsText("candidate", parts, whole)
	}
}

// fitPart finds the layout of a golden port and what a view makes of tensors that are like the
// candidate's.
func (m *matcher) fitPart(g, a *port, view layout.View, shapes ...[]int) (layout.Fit, bool) {
	shape, err := view.Shape(shapes...)
	if err != nil || !sameKind(g, a) {
		return layout.Fit{}, false
	}
	f, fits := m.padding.Fit(g.shape, shape, layout.Allow{Reshape: m.opt.AllowReshape})
	if fits {
		f.Actual = append(view, f.Actual...)
	}
	return f, fits
}

// axis of a join or split; −1 is the last.
func (j *joined) axis() int {
	if j.rule != nil && j.rule.Axis != nil {
		return *j.rule.Axis
	}
	return -1
}

// slices returns the views that cut a whole into parts, nil if their widths do not add up. A part may
// have a batch axis in front that the whole has not, and the reverse, so axes are counted from the
// end.
func (j *joined) slices(parts []*port, whole []int) (views []layout.View) {
	axis, to := j.axis(), 0
	if axis < 0 {
		axis += len(whole)
	}
	if axis < 0 || axis >= len(whole) {
		return nil
	}
	for _, p := range parts {
		at := len(p.shape) - (len(whole) - axis)
		if at < 0 {
			return nil
		}
		from := to
		to += p.shape[at]
		views = append(views, layout.View{{Kind: layout.Slice, Axis: axis, From: from, To: to}})
	}
	if to != whole[axis] {
		return nil
	}
	return views
}

func widthsText(side string, parts []*port, whole *port) string {
	shapes := collect(parts, func(p *port) string { return tensor.FormatShape(p.shape) })
	return fmt.Sprintf("the %s shapes %s do not add up to %s of %s", side, strings.Join(shapes, ", "),
		tensor.FormatShape(whole.shape), whole.call.layer)
}
