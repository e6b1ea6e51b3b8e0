package match

import (
	"fmt"
	"slices"

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

func (j *joined) nodes() []*node { return slices.Concat(j.golden, j.actual) }

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
			_, fit = m.fitPorts(og, oa, layout.Allow{LastRow: m.generating, Reshape: m.opt.AllowReshape})
			return fit, true
		}
	}
	return false, false
}
