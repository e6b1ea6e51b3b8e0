package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// finish sorts the pairs and says what is left over and why.
func (m *matcher) finish() {
	golden, actual := m.golden.all, m.actual.all
	slices.SortStableFunc(m.Pairs, func(a, b Pair) int {
		return cmp.Or(golden[a.Golden[0]].rank-golden[b.Golden[0]].rank, actual[a.Actual[0]].rank-actual[b.Actual[0]].rank)
	})
	for _, pair := range m.Pairs {
		layer := golden[pair.Golden[0]].call.layer
		for _, i := range pair.Actual {
			if partners, with := m.Layers[layer], actual[i].call.layer; !slices.Contains(partners, with) {
				m.Layers[layer] = append(partners, with)
			}
		}
	}
	if len(m.lastRows) > 0 {
		m.note("last row only: " + strings.Join(slices.Sorted(maps.Keys(m.lastRows)), ", "))
	}
	m.UnmatchedGolden, m.UnmatchedActual = m.unmatched(m.golden), m.unmatched(m.actual)
	m.findGaps()
	for i, line := range m.Notes {
		if n := m.noted[line]; n > 1 {
			m.Notes[i] = fmt.Sprintf("%s (%d times)", line, n)
		}
	}
}

// unmatched lists the ports of a side without partner. The nearest name is looked up for one layer
// of all blocks.
func (m *matcher) unmatched(s *side) []Unmatched {
	free := labels(keep(s.other.nodes, func(n *node) bool { return n.join == nil })) // a joined one is no slip of another
	var out []Unmatched
	near, tried := map[*node]string{}, map[string]bool{}
	for _, port := range s.ports {
		if port.used || port.call == nil {
			continue
		}
		n := port.call.node
		u := Unmatched{Index: port.index}
		u.Reason, u.Usual = m.reason(port)
		if n.join == nil && u.Reason == "" {
			if k := label.Stars(n.label); len(tried) < maxHints && !tried[k] {
				tried[k] = true
				near[n], _ = label.Nearest(n.label, free)
			}
			u.Nearest = near[n]
		}
		out = append(out, u)
	}
	return out
}

// noteJoins says once for all blocks what was not done by equal names.
func (m *matcher) noteJoins() {
	for _, j := range m.joins {
		g, a := j.golden[0], j.actual[0]
		switch {
		case j.rule != nil:
			m.note("by a rule: " + j.rule.String())
		case j.fused():
			m.note(fmt.Sprintf("%s = candidate %s", starred(j.golden), starred(j.actual)))
		case j.root && !slices.Equal(g.form, a.form):
			m.note(fmt.Sprintf("%s = candidate %s: both are the whole model", g.label, a.label))
		}
	}
}

func starred(nodes []*node) string { return strings.Join(collect(labels(nodes), label.Stars), ", ") }

// note says what was done, with all blocks in one line.
func (m *matcher) note(line string) {
	if m.noted[line]++; m.noted[line] == 1 {
		m.Notes = append(m.Notes, line)
	}
}
