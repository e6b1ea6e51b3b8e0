package match

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// byPlace pairs what no value and no name pairs, again and again: what is found tells more of the rest.
func (p *search) byPlace() {
	ordered := !p.golden.byName && !p.actual.byName
	for range maxRounds {
		before := len(p.found)
		p.generalise(p.byScore(!ordered), byPlace)
		if ordered {
			p.generalise(p.byOrder(), byPlace)
		}
		if len(p.found) == before {
			return
		}
	}
}

// open reports whether a layer may still get a partner without an equal value.
func (p *search) open(n *node) bool { return n.free() && n.out != nil && !n.accounted() }

// byScore pairs the layers that go together better than with any other and were given the same or,
// by name, are called alike in one block.
func (p *search) byScore(byName bool) []edge {
	golden, actual := keep(p.golden.layers, p.open), keep(p.actual.layers, p.open)
	var edges []edge
	for _, g := range golden[:min(len(golden), maxOpen)] { // the first blocks tell
		for _, a := range actual[:min(len(actual), maxOpen)] {
			given := g.sameInputs(a) > 0
			if !given && (!byName || g.inBlock() != a.inBlock() || !p.sameBlock(g, a)) {
				continue
			}
			if s := p.score(g, a); s >= 1+minScore/2 || given && s >= minScore {
				edges = append(edges, edge{g, a, s})
			}
		}
	}
	pairs, _ := assign(edges)
	return pairs
}

// byOrder pairs layers in the order of execution, between what is paired.
func (p *search) byOrder() (pairs []edge) {
	for _, s := range p.stretches() {
		p.byWidths(s.actual, s.golden)
		p.byWidths(s.golden, s.actual)
	}
	for _, s := range p.stretches() {
		pairs = append(pairs, p.align(s.golden, s.actual)...)
	}
	return p.settled(pairs)
}

// stretches lists the layers between what is paired that may get a partner.
func (p *search) stretches() []stretch {
	out := stretches(p.golden.layers, p.actual.layers, func(n *node) *node { return n.pair })
	for i := range out {
		out[i].golden, out[i].actual = keep(out[i].golden, p.open), keep(out[i].actual, p.open)
	}
	return out
}

// settled drops the pairs of layers that go as well with another one that was given the same: only
// the order speaks for them, in which two engines need not call q, k and v.
func (p *search) settled(pairs []edge) []edge {
	partner := map[*node]*node{}
	for _, e := range pairs {
		partner[e.golden], partner[e.actual] = e.actual, e.golden
	}
	rival := func(c *side, n *node, least float64, score func(*node) float64) bool {
		return slices.ContainsFunc(c.layers, func(o *node) bool {
			return o != n && p.open(o) && parallel(n, o) && !nested(n, o) && !nested(partner[n], partner[o]) && score(o) > least
		})
	}
	return keep(pairs, func(e edge) bool {
		least := p.score(e.golden, e.actual) - margin
		if rival(p.golden, e.golden, least, func(g *node) float64 { return p.score(g, e.actual) }) ||
			rival(p.actual, e.actual, least, func(a *node) float64 { return p.score(e.golden, a) }) {
			p.parallel[e.golden] = e.actual
			return false
		}
		return true
	})
}

// nested reports whether one of two layers lies inside of the other: it returns first.
func nested(n, o *node) bool {
	return n != nil && o != nil && (label.Inside(n.label, o.label) || label.Inside(o.label, n.label))
}

// parallel reports whether a layer was given what another one of its run is about.
func parallel(n, o *node) bool { return len(n.in) > 0 && slices.Contains(o.in, n.in[0]) }
