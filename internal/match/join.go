package match

import (
	"fmt"
	"slices"
	"strings"
)

// joined is one layer of both runs. One side has several nodes if the other fuses them.
type joined struct {
	golden, actual []*node
	rule           *Rule
	ports          [2]string // of a rule that names one port on each side
	root           bool
}

// matcher joins the nodes of two sides.
type matcher struct {
	golden, actual *side
	opt            Options
	lay            layouts
	generating     bool
	joins          []*joined
	ofGolden       map[*node]*joined
	ofActual       map[*node]*joined
	settled        map[*node]bool // ambiguous, and reported
	learned        []translation
	notes          notes
	errs           []error
}

func (m *matcher) add(j *joined) {
	m.joins = append(m.joins, j)
	for _, n := range j.golden {
		m.ofGolden[n] = j
	}
	for _, n := range j.actual {
		m.ofActual[n] = j
	}
}

// addNodes joins nodes, of which some stand for groups.
func (m *matcher) addNodes(g, a *node) {
	m.add(&joined{golden: g.all(), actual: a.all()})
	m.ofGolden[g], m.ofActual[a] = m.joins[len(m.joins)-1], m.joins[len(m.joins)-1]
}

// joinLayers is the rounds of the package comment, after the rules.
func (m *matcher) joinLayers() {
	m.byKey(m.golden.nodes, m.actual.nodes, func(n *node) string { return n.label })
	m.rounds(m.golden.nodes, m.actual.nodes)
	m.fused()
}

func (m *matcher) rounds(golden, actual []*node) {
	strict := func(n *node) []string { return n.segs }
	free := func(n *node) []string { return n.loose }
	m.byKey(golden, actual, func(n *node) string { return key(n.segs) })
	m.byKey(golden, actual, func(n *node) string { return key(n.loose) })
	m.roots()
	m.dropWrappers(golden, actual, strict)
	m.dropWrappers(golden, actual, free)
	m.learnWrappers(golden, actual)
}

func (m *matcher) open(golden, actual []*node) (g, a []*node) {
	for _, n := range golden {
		if m.ofGolden[n] == nil && !m.settled[n] {
			g = append(g, n)
		}
	}
	for _, n := range actual {
		if m.ofActual[n] == nil && !m.settled[n] {
			a = append(a, n)
		}
	}
	return g, a
}

// byKey joins what has one key on both sides. Roots are left to m.roots.
func (m *matcher) byKey(golden, actual []*node, keyOf func(*node) string) {
	golden, actual = m.open(golden, actual)
	have := map[string][]*node{}
	for _, n := range actual {
		if !onlyWrappers(n.segs) {
			have[keyOf(n)] = append(have[keyOf(n)], n)
		}
	}
	var e edges
	for _, g := range golden {
		for _, a := range have[keyOf(g)] {
			e.add(g, a)
		}
	}
	m.resolve(e)
}

// maxDropped is how many wrapper words are dropped from both labels together.
const maxDropped = 6

// dropWrappers joins labels that are equal without some leading wrapper words, as few as needed.
func (m *matcher) dropWrappers(golden, actual []*node, form func(*node) []string) {
	tails := func(n *node) []string { // by number of dropped words
		segs := form(n)
		var out []string
		for k := 0; k <= maxDropped && !onlyWrappers(segs[k:]); k++ {
			out = append(out, key(segs[k:]))
			if !wrappers[segs[k]] {
				break
			}
		}
		return out
	}
	for cost := 1; cost <= maxDropped; cost++ {
		g, a := m.open(golden, actual)
		have := map[string][]*node{} // tail and its cost
		for _, n := range a {
			for k, t := range tails(n) {
				id := fmt.Sprint(k, " ", t)
				have[id] = append(have[id], n)
			}
		}
		var e edges
		for _, n := range g {
			for k, t := range tails(n) {
				if k > cost {
					break
				}
				for _, other := range have[fmt.Sprint(cost-k, " ", t)] {
					e.add(n, other)
				}
			}
		}
		m.resolve(e)
	}
}

// edges are possible joins of equal worth.
type edges struct {
	order    []*node // golden nodes as they came
	ofGolden map[*node][]*node
	ofActual map[*node][]*node
}

func (e *edges) add(g, a *node) {
	if e.ofGolden == nil {
		e.ofGolden, e.ofActual = map[*node][]*node{}, map[*node][]*node{}
	}
	if slices.Contains(e.ofGolden[g], a) {
		return
	}
	if e.ofGolden[g] == nil {
		e.order = append(e.order, g)
	}
	e.ofGolden[g] = append(e.ofGolden[g], a)
	e.ofActual[a] = append(e.ofActual[a], g)
}

// resolve joins where each side has one choice, if need be the one whose shapes fit. Else it is ambiguous.
func (m *matcher) resolve(e edges) {
	single := func(g *node, fits func(g, a *node) bool) *node {
		var found []*node
		for _, a := range e.ofGolden[g] {
			if m.ofActual[a] == nil && fits(g, a) {
				found = append(found, a)
			}
		}
		if len(found) != 1 {
			return nil
		}
		rivals := 0
		for _, other := range e.ofActual[found[0]] {
			if m.ofGolden[other] == nil && fits(other, found[0]) {
				rivals++
			}
		}
		if rivals != 1 {
			return nil
		}
		return found[0]
	}
	for _, fits := range []func(g, a *node) bool{func(_, _ *node) bool { return true }, m.fits} {
		for _, g := range e.order {
			if a := single(g, fits); m.ofGolden[g] == nil && a != nil {
				m.addNodes(g, a)
			}
		}
	}
	for _, g := range e.order {
		if m.ofGolden[g] != nil || m.settled[g] {
			continue
		}
		var left []*node
		for _, a := range e.ofGolden[g] {
			if m.ofActual[a] == nil {
				left = append(left, a)
			}
		}
		if len(left) == 0 {
			continue
		}
		var rivals []*node
		for _, a := range left {
			for _, other := range e.ofActual[a] {
				if m.ofGolden[other] == nil && !slices.Contains(rivals, other) {
					rivals = append(rivals, other)
				}
			}
		}
		m.ambiguous(rivals, left)
	}
}

func (m *matcher) ambiguous(golden, actual []*node) {
	for _, n := range slices.Concat(golden, actual) {
		m.settled[n] = true
	}
	m.errs = append(m.errs,
		fmt.Errorf("match: ambiguous names: golden %s and candidate %s fit each other equally well: say under names which is which",
			quoted(golden), quoted(actual)))
}

func quoted(nodes []*node) string {
	var out []string
	for _, n := range nodes {
		for _, member := range n.all() {
			out = append(out, fmt.Sprintf("%q", member.label))
		}
	}
	return strings.Join(out, ", ")
}

// roots joins labels that are wrapper words only: the whole model and what it wraps. Equal names go first, then the outermost, and both
// only if
// the outputs fit: the inner model gives hidden states, the outer one logits.
func (m *matcher) roots() {
	pick := func(ok func(g, a *node) bool) {
		golden, actual := m.open(m.golden.nodes, m.actual.nodes)
		byDepth := func(a, b *node) int { return len(a.segs) - len(b.segs) }
		golden = slices.DeleteFunc(golden, func(n *node) bool { return !onlyWrappers(n.segs) })
		actual = slices.DeleteFunc(actual, func(n *node) bool { return !onlyWrappers(n.segs) })
		slices.SortStableFunc(golden, byDepth)
		slices.SortStableFunc(actual, byDepth)
		for _, a := range actual {
			for _, g := range golden {
				if m.ofGolden[g] == nil && ok(g, a) {
					m.addNodes(g, a)
					m.joins[len(m.joins)-1].root = true
					break
				}
			}
		}
	}
	same := func(g, a *node) bool { return key(g.segs) == key(a.segs) }
	pick(func(g, a *node) bool { return same(g, a) && m.fits(g, a) })
	pick(func(g, a *node) bool { return m.outputsFit(g, a) == fit })
	pick(same)
	if !slices.ContainsFunc(m.joins, func(j *joined) bool { return j.root }) {
		first := true // the outermost of each side, whatever its shape: a wrong one is a finding
		pick(func(_, _ *node) bool { defer func() { first = false }(); return first })
	}
}

// The ways in which the outputs of two layers can lie to each other.
const (
	unknown = iota // a side recorded none
	fit
	misfit
)

func (m *matcher) fits(g, a *node) bool { return m.outputsFit(g, a) != misfit }

// outputsFit compares the first outputs of two layers in the first pass that both have.
func (m *matcher) outputsFit(g, a *node) int {
	for _, p := range m.golden.sortedPasses(g) {
		og, oa := m.golden.mainOutput(g.passes[p]), m.actual.mainOutput(a.passes[p])
		if og < 0 || oa < 0 {
			continue
		}
		if _, ok := m.fitPorts(m.golden.ports[og], m.actual.ports[oa], allow{lastRow: m.generating, reshape: m.opt.AllowReshape}); ok {
			return fit
		}
		return misfit
	}
	return unknown
}
