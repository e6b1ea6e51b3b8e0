package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/nearest"
)

// result sorts the pairs and says what is left over and why.
func (m *matcher) result() *Result {
	slices.SortStableFunc(m.pairs, func(a, b *paired) int {
		return cmp.Or(a.golden.rank-b.golden.rank, a.actual[0].rank-b.actual[0].rank)
	})
	r := &Result{Pairs: slices.Grow([]Pair(nil), len(m.pairs)), Layers: map[string][]string{}, Unused: m.unused}
	cut := map[string]bool{} // golden layers of which one side has the last row only
	for _, pair := range m.pairs {
		layer := pair.golden.call.layer
		pair.Golden, pair.Actual = []int{pair.golden.index}, collect(pair.actual, func(p *port) int { return p.index })
		r.Pairs = append(r.Pairs, pair.Pair)
		if pair.lastRow {
			cut[layer] = true
		}
		for _, a := range pair.actual {
			if partners := r.Layers[layer]; !slices.Contains(partners, a.call.layer) {
				r.Layers[layer] = append(partners, a.call.layer)
			}
		}
	}
	if len(cut) > 0 {
		m.notes.add("last row only: " + strings.Join(slices.Sorted(maps.Keys(cut)), ", "))
	}
	r.UnmatchedGolden = m.unmatched(m.golden)
	r.UnmatchedActual = m.unmatched(m.actual)
	r.Gaps, r.Moved = m.gaps()
	r.Notes = m.notes.list()
	return r
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
				near[n], _ = nearest.Nearest(n.label, free)
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
			m.notes.add("by a rule: " + j.rule.String())
		case j.fused():
			m.notes.add(fmt.Sprintf("%s = candidate %s", starred(j.golden), starred(j.actual)))
		case j.root && !slices.Equal(g.form, a.form):
			m.notes.add(fmt.Sprintf("%s = candidate %s: both are the whole model", g.label, a.label))
		}
	}
}

func starred(nodes []*node) string { return strings.Join(collect(labels(nodes), label.Stars), ", ") }

// notes say what was done, with all blocks in one line.
type notes []string

func (n *notes) add(line string) { *n = append(*n, line) }

func (n *notes) list() []string {
	count := map[string]int{}
	for _, l := range *n {
		count[l]++
	}
	var out []string
	for _, l := range *n {
		if c := count[l]; c > 1 {
			out = append(out, fmt.Sprintf("%s (%d times)", l, c))
		} else if c == 1 {
			out = append(out, l)
		}
		count[l] = 0
	}
	return out
}
