package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// fusion is a projection that one engine computes in one matrix product and the other in several.
type fusion struct {
	whole []string   // folded names of the one layer
	parts [][]string // folded names of the others, in the order of the columns: parts[i][f] is part i in family f
}

// Interleaved forms (query_key_value, whose columns go by head) are not among them: only a rule can
// say how they lie.
var fusions = []fusion{
	{label.StackedQKV.Folded(), [][]string{label.QueryNames.Folded(), label.KeyNames.Folded(), label.ValueNames.Folded()}},
	{label.StackedGateUp.Folded(), [][]string{label.GateNames.Folded(), label.UpNames.Folded()}},
}

// fused joins fused projections that are left over: the parts become one group, named like the
// fused layer, and take part in the rounds.
func (m *matcher) fused() {
	for i, f := range fusions {
		name := fmt.Sprintf("*fused%d", i) // no label has a star in it by itself
		m.joinNamed(f.groups(m.golden, name), f.wholes(m.actual, name))
		m.joinNamed(f.wholes(m.golden, name), f.groups(m.actual, name))
	}
}

// wholes makes a group of each fused layer.
func (f fusion) wholes(s *side, name string) []*node {
	wholes := keep(open(s.nodes), func(n *node) bool { return slices.Contains(f.whole, n.lastSegment()) })
	return collect(wholes, func(n *node) *node { return standIn(name, n) })
}

// groups makes a group of each complete set of parts with one parent.
func (f fusion) groups(s *side, name string) (out []*node) {
	done := map[string]bool{}
	for _, n := range open(s.nodes) {
		parent := label.Parent(n.label)
		if done[parent] {
			continue
		}
		done[parent] = true
		if parts := f.family(open(s.children[parent])); parts != nil {
			out = append(out, standIn(name, parts...))
		}
	}
	return out
}

// family returns the siblings that are the parts of a fusion, all named as in one family; nil if
// there are none.
func (f fusion) family(siblings []*node) []*node {
	for i := range f.parts[0] {
		parts := each(f.parts, func(names []string) *node {
			return find(siblings, func(n *node) bool { return i < len(names) && n.lastSegment() == names[i] })
		})
		if parts != nil {
			return parts
		}
	}
	return nil
}

// standIn is a node that stands for others; it has the parent of the first one.
func standIn(name string, members ...*node) *node {
	first := members[0]
	g := newNode(first.side, strings.TrimSuffix(first.label, label.Last(first.label))+name)
	g.members = members
	return g
}

// callsIn returns the call of each node in a pass; nil if one was not called.
func callsIn(nodes []*node, pass pass) []*call {
	return each(nodes, func(n *node) *call { return n.at(pass) })
}

// splitActual pairs the several projections that the candidate has fused: it takes the columns of each golden part
// from the one output, and all share the one input.
func (c *callPairing) splitActual(golden []*call, fused *call) {
	if parts, whole := each(golden, (*call).main), fused.main(); parts != nil && whole != nil {
		for i, view := range c.join.slices(parts, whole.shape) {
			note := fmt.Sprintf("part %d of %d of candidate %s", i+1, len(parts), fused.layer)
			c.viewed(parts[i], []*port{whole}, view, note).Shared = true
		}
	}
	for _, g := range golden {
		at := len(c.Pairs)
		c.pairing(c.join).inputs(g.ports[label.RoleInput], fused.ports[label.RoleInput])
		for i := range c.Pairs[at:] {
			pair := &c.Pairs[at+i]
			pair.Shared = true
			pair.Note = join("the input of candidate "+fused.layer, pair.Note)
		}
	}
	c.computed(golden[0].ports[label.RoleInput], fused.ports[label.RoleComputed])
}

// joinActual pairs the one projection that the candidate has in several: it puts their outputs side by side. They take
// one input, so that of the first stands for all.
func (c *callPairing) joinActual(fused *call, actual []*call) {
	if whole, parts := fused.main(), each(actual, (*call).main); whole != nil && parts != nil {
		note := "candidate " + strings.Join(collect(actual, func(c *call) string { return c.layer }), ", ") + " side by side"
		c.viewed(whole, parts, layout.View{{Kind: layout.Concat, Axis: c.join.axis()}}, note)
	}
	inputs, first := fused.ports[label.RoleInput], actual[0]
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
func (m *matcher) viewed(g *port, actual []*port, view layout.View, note string) *Pair {
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
	for i, p := range parts {
		at := len(p.shape) - (len(whole) - axis)
		if axis < 0 || axis >= len(whole) || at < 0 {
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
