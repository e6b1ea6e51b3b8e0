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
func (p *pairing) result() *Result {
	slices.SortStableFunc(p.pairs, func(a, b *paired) int {
		return cmp.Or(a.golden[0].rank-b.golden[0].rank, a.actual[0].rank-b.actual[0].rank)
	})
	r := &Result{Layers: map[string][]string{}}
	for _, pair := range p.pairs {
		pair.Golden, pair.Actual = indices(pair.golden), indices(pair.actual)
		r.Pairs = append(r.Pairs, pair.Pair)
		for _, g := range pair.golden {
			for _, a := range pair.actual {
				if partners := r.Layers[g.call.layer]; !slices.Contains(partners, a.call.layer) {
					r.Layers[g.call.layer] = append(partners, a.call.layer)
				}
			}
		}
	}
	if len(p.cut) > 0 {
		p.notes.add("last row only: " + strings.Join(slices.Sorted(maps.Keys(p.cut)), ", "))
	}
	r.UnmatchedGolden = p.unmatched(p.golden)
	r.UnmatchedActual = p.unmatched(p.actual)
	r.Gaps = p.gaps()
	r.Notes = p.notes.list()
	return r
}

func indices(ports []*port) []int {
	out := make([]int, len(ports))
	for i, p := range ports {
		out[i] = p.index
	}
	return out
}

// unmatched lists the ports of a side without partner. The nearest name is looked up for one layer
// of all blocks.
func (p *pairing) unmatched(s *side) []Unmatched {
	var free []string // labels that are not joined: a joined one is no slip of another
	for _, n := range s.other.nodes {
		if n.join == nil {
			free = append(free, n.label)
		}
	}
	var out []Unmatched
	near, tried := map[*node]string{}, map[string]bool{}
	for _, port := range s.ports {
		if port.used || port.call == nil {
			continue
		}
		n := port.call.node
		u := Unmatched{Index: port.index, Reason: p.reason(port)}
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
func (p *pairing) noteJoins() {
	for _, j := range p.joins {
		g, a := j.golden[0], j.actual[0]
		switch {
		case j.rule != nil:
			p.notes.add("by a rule: " + j.rule.String())
		case j.fused():
			p.notes.add(fmt.Sprintf("%s = candidate %s", starred(j.golden), starred(j.actual)))
		case j.root && g.strict.name != a.strict.name:
			p.notes.add(fmt.Sprintf("%s = candidate %s: both are the whole model", g.label, a.label))
		}
	}
	for _, t := range p.learned {
		p.notes.add(fmt.Sprintf("golden prefix %q = candidate prefix %q, learned from the layers behind it", t.golden, t.actual))
	}
}

func starred(nodes []*node) string {
	out := labels(nodes)
	for i, l := range out {
		out[i] = label.Stars(l)
	}
	return strings.Join(out, ", ")
}

// notes collects what was done, with all blocks in one line.
type notes struct {
	lines []string
	count map[string]int
}

func (n *notes) add(line string) {
	if n.count == nil {
		n.count = map[string]int{}
	}
	if n.count[line]++; n.count[line] == 1 {
		n.lines = append(n.lines, line)
	}
}

func (n *notes) list() []string {
	out := slices.Clone(n.lines)
	for i, l := range out {
		if c := n.count[l]; c > 1 {
			out[i] = fmt.Sprintf("%s (%d times)", l, c)
		}
	}
	return out
}
