package match

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// byFlow pairs the layers that were given the outputs of one pair and go together better than with
// any other.
func (p *search) byFlow() []edge {
	consumers := p.actual.consumers()
	var edges []edge
	for _, g := range p.golden.layers {
		if !p.open(g) {
			continue
		}
		for _, v := range g.in {
			for _, from := range v.from {
				if from.pair == nil || from.pair.value == nil {
					continue
				}
				for _, a := range consumers[from.pair.value] {
					if s := p.score(g, a); p.open(a) && s > 0 && g.sameInputs(a) > 0 {
						edges = append(edges, edge{g, a, s})
					}
				}
			}
		}
	}
	pairs, _ := assign(edges)
	return pairs
}

// byWords pairs what no order tells apart: layers of one block whose shapes fit and whose names say
// the same.
func (p *search) byWords() []edge {
	golden, actual := keep(p.golden.layers, p.open), keep(p.actual.layers, p.open)
	var edges []edge
	for _, g := range golden[:min(len(golden), maxOpen)] { // the first blocks tell
		for _, a := range actual[:min(len(actual), maxOpen)] {
			if !p.sameBlock(g, a) || g.inBlock() != a.inBlock() {
				continue
			}
			if s := p.score(g, a); s >= 1+minScore || s >= 1+minScore/2 && p.sameParent(g, a) > 0 {
				edges = append(edges, edge{g, a, s})
			}
		}
	}
	pairs, _ := assign(edges)
	return pairs
}

// settled drops the pairs of layers that go as well with another one that was given the same: only
// the order speaks for them, in which two engines need not call q, k and v.
func (p *search) settled(pairs []edge) []edge {
	golden, actual := p.golden.consumers(), p.actual.consumers()
	partner := map[*node]*node{}
	for _, e := range pairs {
		partner[e.golden], partner[e.actual] = e.actual, e.golden
	}
	return keep(pairs, func(e edge) bool {
		least := p.score(e.golden, e.actual) - margin
		rival := func(n *node, consumers map[*value][]*node, score func(*node) float64) bool {
			return len(n.in) > 0 && slices.ContainsFunc(consumers[n.in[0]], func(o *node) bool {
				return o != n && p.open(o) && parallel(n, o) && !nested(n, o) && !nested(partner[n], partner[o]) &&
					score(o) > least
			})
		}
		if rival(e.golden, golden, func(g *node) float64 { return p.score(g, e.actual) }) ||
			rival(e.actual, actual, func(a *node) float64 { return p.score(e.golden, a) }) {
			p.parallel[e.golden] = e.actual
			return false
		}
		return true
	})
}

// consumers lists the layers by the values that they were given.
func (c *contents) consumers() map[*value][]*node {
	out := map[*value][]*node{}
	for _, n := range c.layers {
		for _, v := range n.in {
			out[v] = append(out[v], n)
		}
	}
	return out
}

// nested reports whether one of two layers lies inside of the other: it returns first.
func nested(n, o *node) bool {
	return n != nil && o != nil && (label.Inside(n.label, o.label) || label.Inside(o.label, n.label))
}

// parallel reports whether two layers of a run were given the same and nothing else.
func parallel(n, o *node) bool {
	within := func(a, b []*value) bool {
		return !slices.ContainsFunc(a, func(v *value) bool { return !slices.Contains(b, v) })
	}
	return len(n.in) > 0 && within(n.in, o.in) && within(o.in, n.in)
}
