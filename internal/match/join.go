package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// joined is one layer of both runs. One side has several nodes if the other fuses them.
type joined struct {
	golden, actual []*node
	rule           *Rule
	ports          [2]string // of a rule that names one port on each side
	root           bool      // both are the whole model
	lastRow        bool      // one side may hold the last row only
}

func (j *joined) fused() bool { return len(j.golden) > 1 || len(j.actual) > 1 }

func (j *joined) nodes() []*node { return slices.Concat(j.golden, j.actual) }

// ofPorts reports whether the join is of one port on each side, not of layers.
func (j *joined) ofPorts() bool { return j.ports != [2]string{} }

// matcher joins the nodes of two sides.
type matcher struct {
	golden, actual *side
	opt            Options
	padding        padMask
	generating     bool
	joins          []*joined
	rooted         bool // some join is of the whole models
	learned        []translation
	noted          map[string]int  // how often each note was made
	lastRows       map[string]bool // golden layers of which one side has the last row only
	reported       map[string]bool // what is ambiguous, of all blocks
	errs           []error
	*Result
}

func (m *matcher) addJoin(j *joined) {
	m.joins = append(m.joins, j)
	for _, n := range j.nodes() {
		n.join = j
	}
}

// addNodes joins two nodes, of which each may stand for a group.
func (m *matcher) addNodes(g, a *node) *joined {
	j := &joined{golden: g.members, actual: a.members}
	m.addJoin(j)
	g.join, a.join = j, j
	return j
}

// resolve joins the layers of which each is the other's best choice. What remains is ambiguous, which
// is reported once for all blocks, and takes no part in further rounds.
func (m *matcher) resolve(edges []edge) {
	pairs, rest := assign(edges)
	for _, p := range pairs {
		m.addNodes(p.golden, p.actual)
	}
	for _, e := range rest {
		if e.golden.settled {
			continue
		}
		var golden, actual []*node
		for _, o := range rest {
			if o.golden == e.golden && !slices.Contains(actual, o.actual) {
				actual = append(actual, o.actual)
			}
		}
		for _, o := range rest {
			if slices.Contains(actual, o.actual) && !slices.Contains(golden, o.golden) {
				golden = append(golden, o.golden)
			}
		}
		for _, n := range slices.Concat(golden, actual) {
			n.settled = true
		}
		if look := starred(golden) + "\n" + starred(actual); !m.reported[look] {
			m.reported[look] = true
			m.errs = append(m.errs, fmt.Errorf("match: ambiguous names: golden %s and candidate %s "+
				"fit each other equally well: say under names which is which, parity names proposes it by value",
				quoted(golden), quoted(actual)))
		}
	}
}

func quoted(nodes []*node) string {
	return quotedAll(labels(slices.Concat(collect(nodes, func(n *node) []*node { return n.members })...)))
}

// roots joins labels that are wrapper words only: the whole model and what it wraps. Equal names
// whose outputs fit go first, then the outermost, and both only if the outputs fit: the inner model
// returns hidden states, the outer one logits. What only a shape or a name speaks for must be the
// whole of the other, as far as the layers inside tell.
func (m *matcher) roots() {
	roots := func(s *side) []*node {
		roots := keep(open(s.nodes), func(n *node) bool { return n.root })
		slices.SortStableFunc(roots, func(a, b *node) int { return len(a.form) - len(b.form) })
		return roots
	}
	golden, actual := roots(m.golden), roots(m.actual)
	pick := func(ok func(g, a *node) bool) {
		for _, a := range actual {
			for _, g := range golden {
				if a.join == nil && g.join == nil && ok(g, a) {
					m.addNodes(g, a).root = true
					m.rooted = true
				}
			}
		}
	}
	same := func(g, a *node) bool { return slices.Equal(g.form, a.form) }
	pick(func(g, a *node) bool { return same(g, a) && m.fits(g, a) })
	pick(func(g, a *node) bool { fit, _ := m.outputsFit(g, a); return fit && g.endsWith(a) })
	pick(func(g, a *node) bool { return same(g, a) && g.endsWith(a) })
	pick(func(g, a *node) bool { return !m.rooted && g.endsWith(a) }) // whatever their shapes: a wrong one is a finding
}

// endsWith reports whether nothing shows that a candidate's model ends before the golden one: where
// both have layers inside, some of them were joined, and no block comes after the last of these.
// A part of a model has outputs of the same shape, and they are right to differ.
func (n *node) endsWith(a *node) bool {
	inside := n.inside()
	if len(inside) == 0 || len(a.inside()) == 0 {
		return true
	}
	end := -1
	for _, i := range inside {
		if i.join != nil {
			end = max(end, i.last)
		}
	}
	cut := slices.ContainsFunc(inside, func(i *node) bool {
		return i.join == nil && i.numbered() && i.last > end && i.reason() == ""
	})
	if end >= 0 && !cut {
		return true
	}
	n.why = "the candidate recorded only a part of what it has inside, so no output is known to be its"
	a.why = fmt.Sprintf("the candidate recorded only a part of what %s has inside, "+
		"so nothing tells whether this is all of it: if it is, join the two under names", n.label)
	return false
}

// inside lists the nodes inside of a node, by their labels.
func (n *node) inside() []*node {
	return keep(n.side.nodes, func(i *node) bool { return label.Inside(i.label, n.label) })
}

// fits reports whether nothing is known against two layers' being one.
func (m *matcher) fits(g, a *node) bool {
	fit, known := m.outputsFit(g, a)
	return fit || !known
}

// outputsFit compares the first outputs of two layers in the first pass that both have.
func (m *matcher) outputsFit(g, a *node) (fit, known bool) {
	for _, c := range g.calls {
		if og, oa := c.main(), a.at(c.pass).main(); og != nil && oa != nil {
			_, fit = m.fitPorts(og, oa, allowance{LastRow: m.generating, Reshape: m.opt.AllowReshape})
			return fit, true
		}
	}
	return false, false
}

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

// splitActual pairs the several projections that the candidate has fused: it takes the columns of
// each golden part from the one output, and all share the one input.
func (c *callPairing) splitActual(golden []*call, fused *call) {
	if parts, whole := each(golden, (*call).main), fused.main(); parts != nil && whole != nil {
		for i, view := range c.join.slices(parts, whole.shape) {
			note := fmt.Sprintf("part %d of %d of candidate %s", i+1, len(parts), fused.layer)
			c.viewed(parts[i], []*port{whole}, view, note)
		}
	}
	at, of := len(c.Pairs), c
	for _, g := range golden {
		of.inputs(g.ports[label.RoleInput], fused.ports[label.RoleInput])
		of = c.pairing(c.join)
	}
	for i := range c.Pairs[at:] {
		pair := &c.Pairs[at+i]
		pair.Note = join("the input of candidate "+fused.layer, pair.Note)
	}
	c.computed(golden[0].ports[label.RoleInput], fused.ports[label.RoleComputed])
}

// joinActual pairs the one projection that the candidate has in several: it puts their outputs side
// by side. They take one input, so that of the first stands for all.
func (c *callPairing) joinActual(fused *call, actual []*call) {
	if whole, parts := fused.main(), each(actual, (*call).main); whole != nil && parts != nil {
		note := "candidate " + strings.Join(collect(actual, func(c *call) string { return c.layer }), ", ") + " side by side"
		c.viewed(whole, parts, View{{Kind: Concat, Axis: c.join.axis()}}, note)
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
func (m *matcher) viewed(g *port, actual []*port, view View, note string) {
	alike := !slices.ContainsFunc(actual, func(a *port) bool { return a.dtype != actual[0].dtype }) // concat needs one dtype
	shape, err := view.Shape(collect(actual, func(a *port) []int { return a.shape })...)
	if view != nil && err == nil && alike && sameKind(g, actual[0]) {
		if f, fits := m.padding.Fit(g.shape, shape, allowance{Reshape: m.opt.AllowReshape}); fits {
			f.Actual = append(view, f.Actual...)
			m.add(g, actual, f, note)
			return
		}
	}
	m.add(g, actual, placement{}, note).Problem = m.whyNot(g, actual[0])
}

// axis of a join or split; −1 is the last.
func (j *joined) axis() int {
	if j.rule != nil && j.rule.Axis != nil {
		return *j.rule.Axis
	}
	return -1
}

// slices returns the views that cut a whole into parts, nil for each if their widths do not add up.
// A part may have a batch axis in front that the whole has not, and the reverse, so axes are
// counted from the end.
func (j *joined) slices(parts []*port, whole []int) []View {
	views, none := make([]View, len(parts)), make([]View, len(parts))
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
		views[i] = View{{Kind: Slice, Axis: axis, From: from, To: to}}
	}
	if to != whole[axis] {
		return none
	}
	return views
}
