package match

import (
	"cmp"
	"slices"
)

// index finds values of a run: those of one size, sorted by their keys.
type index map[int][]*value

func newIndex(values []*value) index {
	x := index{}
	for _, v := range values {
		x[v.n] = append(x[v.n], v)
	}
	for _, list := range x {
		slices.SortFunc(list, func(a, b *value) int { return cmp.Compare(a.key, b.key) })
	}
	return x
}

// nearest returns the value at the smallest distance, nil if none is within the tolerance.
func (x index) nearest(v *value, tolerance float64) (best *value) {
	list := x[v.n]
	at, _ := slices.BinarySearchFunc(list, v.key-reach*tolerance,
		func(o *value, key float64) int { return cmp.Compare(o.key, key) })
	for _, o := range list[at:] {
		if o.key > v.key+reach*tolerance {
			break
		}
		if d := v.distance(o); d <= tolerance && (best == nil || d < v.distance(best)) {
			best = o
		}
	}
	return best
}

// equate marks the values that are each other's nearest.
func (p *search) equate() {
	golden, actual := newIndex(p.golden.values), newIndex(p.actual.values)
	for _, g := range p.golden.values {
		if a := actual.nearest(g, p.tolerance); a != nil && golden.nearest(a, p.tolerance) == g {
			g.other, a.other = a, g
		}
	}
}

// pairEqual pairs the layers that hold equal values.
func (p *search) pairEqual(by evidence) {
	golden, actual := p.golden.holders(), p.actual.holders()
	var pairs []edge
	for _, v := range p.golden.values {
		if v.other != nil {
			pairs = append(pairs, p.sameValue(golden[v], actual[v.other])...)
		}
	}
	p.generalise(pairs, by)
}

// holders lists the layers without partner by their value.
func (s *side) holders() map[*value][]*node {
	out := map[*value][]*node{}
	for _, n := range s.layers {
		if n.value != nil && n.free() {
			out[n.value] = append(out[n.value], n)
		}
	}
	return out
}

// sameValue pairs layers that hold one value: those that go together better than with any other,
// then what is left by the order of execution.
func (p *search) sameValue(golden, actual []*node) []edge {
	var edges []edge
	for _, g := range golden {
		for _, a := range actual {
			edges = append(edges, edge{g, a, p.likeness(g, a)})
		}
	}
	pairs, _ := assign(edges)
	for _, e := range pairs {
		golden, actual = without(golden, e.golden), without(actual, e.actual)
	}
	if len(golden) == len(actual) && p.golden.ordered() && p.actual.ordered() {
		for i, g := range golden {
			pairs = append(pairs, edge{golden: g, actual: actual[i]})
		}
	}
	return pairs
}
