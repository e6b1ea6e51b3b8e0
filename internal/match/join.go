package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
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

// ofPorts reports whether the join is of one port on each side, not of layers.
func (j *joined) ofPorts() bool { return j.ports != [2]string{} }

// matcher joins the nodes of two sides.
type matcher struct {
	golden, actual *side
	opt            Options
	padding        layout.Padding
	generating     bool
	joins          []*joined
	rooted         bool // some join is of the whole models
	learned        []translation
	pairs          []*paired
	notes          notes
	errs           []error
}

func (m *matcher) addJoin(j *joined) {
	m.joins = append(m.joins, j)
	for _, n := range slices.Concat(j.golden, j.actual) {
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

// joinLayers runs the rounds of the package comment, after the rules.
func (m *matcher) joinLayers() {
	m.round(m.golden.nodes, m.actual.nodes, 0, func(n *node) []string { return []string{n.label} })
	m.rounds(m.golden.nodes, m.actual.nodes)
	m.roots()
	m.fused()
}

// rounds joins by normal forms, from the surest to the least sure.
func (m *matcher) rounds(golden, actual []*node) {
	strict := func(n *node) []string { return n.strict.tails }
	loose := func(n *node) []string { return n.loose.tails }
	m.round(golden, actual, 0, strict)
	m.round(golden, actual, 0, loose)
	for _, tails := range []func(*node) []string{strict, loose} {
		for dropped := 1; dropped <= maxDropped; dropped++ {
			m.round(golden, actual, dropped, tails)
		}
	}
	m.learnWrappers(golden, actual)
}

// round joins the open nodes whose labels are equal once a number of words, of both sides together,
// is dropped from their fronts. tails returns what is left of a label without its first 0, 1, …
// words. Roots take no part: see roots.
func (m *matcher) round(golden, actual []*node, dropped int, tails func(*node) []string) {
	type rest struct {
		dropped int
		tail    string
	}
	have := map[rest][]*node{}
	for _, a := range open(actual) {
		for k, t := range tails(a) {
			if k <= dropped && !a.root {
				have[rest{k, t}] = append(have[rest{k, t}], a)
			}
		}
	}
	e := edges{of: map[*node][]*node{}}
	for _, g := range open(golden) {
		for k, t := range tails(g) {
			for _, a := range have[rest{dropped - k, t}] {
				e.add(g, a)
			}
		}
	}
	m.resolve(e)
}

// edges are possible joins of equal worth.
type edges struct {
	golden []*node
	of     map[*node][]*node // the choices of a node of either side
}

func (e *edges) add(g, a *node) {
	if e.of[g] == nil {
		e.golden = append(e.golden, g)
	}
	e.of[g] = append(e.of[g], a)
	e.of[a] = append(e.of[a], g)
}

// only returns the one choice that a node has left, nil if there is none or more than one.
func (e *edges) only(n *node) *node {
	choices := e.of[n]
	i := slices.IndexFunc(choices, unjoined)
	if i < 0 || slices.ContainsFunc(choices[i+1:], unjoined) {
		return nil
	}
	return choices[i]
}

func unjoined(n *node) bool { return n.join == nil }

// resolve joins where each side has one choice, if need be the one whose shapes fit. What remains
// is ambiguous.
func (m *matcher) resolve(e edges) {
	m.joinOnly(e)
	fitting := edges{of: map[*node][]*node{}}
	for _, g := range e.golden {
		for _, a := range e.of[g] {
			if g.join == nil && a.join == nil && m.fits(g, a) {
				fitting.add(g, a)
			}
		}
	}
	m.joinOnly(fitting)
	for _, g := range e.golden {
		if g.join != nil || g.settled {
			continue
		}
		left := keep(e.of[g], unjoined)
		var rivals []*node
		for _, a := range left {
			rivals = append(rivals, keep(e.of[a], func(other *node) bool {
				return unjoined(other) && !slices.Contains(rivals, other)
			})...)
		}
		if len(left) > 0 {
			m.ambiguous(slices.Concat(rivals, left), "golden %s and candidate %s fit each other equally well",
				quoted(rivals), quoted(left))
		}
	}
}

func (m *matcher) joinOnly(e edges) {
	for _, g := range e.golden {
		if a := e.only(g); a != nil && e.only(a) == g {
			m.addNodes(g, a)
		}
	}
}

// ambiguous reports nodes that nothing tells apart, and takes them out of the rounds.
func (m *matcher) ambiguous(nodes []*node, format string, args ...any) {
	for _, n := range nodes {
		n.settled = true
	}
	m.errs = append(m.errs, fmt.Errorf("match: ambiguous names: "+format+": say under names which is which, parity names proposes it by value", args...))
}

func quoted(nodes []*node) string {
	return strings.Join(collect(nodes, func(n *node) string {
		return strings.Join(collect(n.members, func(n *node) string { return strconv.Quote(n.label) }), ", ")
	}), ", ")
}

// roots joins labels that are wrapper words only: the whole model and what it wraps. Equal names
// whose outputs fit go first, then the outermost, and both only if the outputs fit: the inner model
// returns hidden states, the outer one logits. What only a shape or a name speaks for must be the
// whole of the other, as far as the layers inside tell.
func (m *matcher) roots() {
	golden, actual := openRoots(m.golden), openRoots(m.actual)
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
	same := func(g, a *node) bool { return g.strict.name == a.strict.name }
	pick(func(g, a *node) bool { return same(g, a) && m.fits(g, a) })
	pick(func(g, a *node) bool { fit, _ := m.outputsFit(g, a); return fit && g.endsWith(a) })
	pick(func(g, a *node) bool { return same(g, a) && g.endsWith(a) })
	pick(func(g, a *node) bool { return !m.rooted && g.endsWith(a) }) // whatever their shapes: a wrong one is a finding
}

// endsWith reports whether nothing shows that a candidate's model ends before the golden one: where
// both have layers inside, some of them were joined, and no block comes behind the last of these.
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
	cut := slices.IndexFunc(inside, func(i *node) bool {
		return i.join == nil && i.numbered() && i.last > end && i.reason() == ""
	})
	if end >= 0 && cut < 0 {
		return true
	}
	n.why = "the candidate recorded only a part of what it has inside, so no output is known to be its"
	a.why = fmt.Sprintf("the candidate recorded only a part of what %s has inside, so nothing tells whether this is all of it: "+
		"if it is, join the two under names", n.label)
	return false
}

// inside lists the nodes inside of a node, by their labels.
func (n *node) inside() []*node {
	return keep(n.side.nodes, func(i *node) bool { return label.Inside(i.label, n.label) })
}

// openRoots lists the open roots of a side, the outermost first.
func openRoots(s *side) []*node {
	roots := keep(open(s.nodes), func(n *node) bool { return n.root })
	slices.SortStableFunc(roots, func(a, b *node) int { return len(a.strict.segs) - len(b.strict.segs) })
	return roots
}

// fits reports whether nothing is known against two layers' being one.
func (m *matcher) fits(g, a *node) bool {
	fit, known := m.outputsFit(g, a)
	return fit || !known
}

// outputsFit compares the first outputs of two layers in the first pass that both have.
func (m *matcher) outputsFit(g, a *node) (fit, known bool) {
	for _, c := range g.calls {
		if og, oa := c.main(), a.in(c.pass).main(); og != nil && oa != nil {
			_, fit = m.fitPorts(og, oa, layout.Allow{LastRow: m.generating, Reshape: m.opt.AllowReshape})
			return fit, true
		}
	}
	return false, false
}
