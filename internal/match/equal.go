package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// index finds values of a run.
type index struct{ bySize map[int][]*value } // by the first projection

func newIndex(values []*value) index {
	x := index{map[int][]*value{}}
	for _, v := range values {
		x.bySize[v.n] = append(x.bySize[v.n], v)
	}
	for _, list := range x.bySize {
		slices.SortFunc(list, func(a, b *value) int { return cmp.Compare(a.proj[0], b.proj[0]) })
	}
	return x
}

// nearest returns the value at the smallest distance, nil if none is within the tolerance.
func (x index) nearest(v *value, tolerance float64) (best *value) {
	list := x.bySize[v.n]
	at, _ := slices.BinarySearchFunc(list, v.proj[0]-reach*tolerance,
		func(o *value, p float64) int { return cmp.Compare(o.proj[0], p) })
	distance := math.Inf(1)
	for _, o := range list[at:] {
		if o.proj[0] > v.proj[0]+reach*tolerance {
			break
		}
		if math.Abs(o.norm-v.norm) > 2*tolerance*v.norm || !v.near(o, tolerance) {
			continue
		}
		if d := v.distance(o); d <= tolerance && d < distance {
			best, distance = o, d
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

// byValue pairs the layers that hold equal values. Where several do, those go together that go
// together better than with any other; then what is left goes by the order of execution.
func (p *search) byValue() {
	for _, inOrder := range []bool{false, true} {
		golden, actual := p.golden.holders(), p.actual.holders()
		var pairs []edge
		for _, v := range p.golden.values {
			if v.other != nil {
				pairs = append(pairs, p.sameValue(golden[v], actual[v.other], inOrder)...)
			}
		}
		p.generalise(pairs, byValue)
	}
}

// holders lists the layers without partner by their value.
func (c *contents) holders() map[*value][]*node {
	out := map[*value][]*node{}
	for _, n := range c.layers {
		if n.value != nil && n.free() {
			out[n.value] = append(out[n.value], n)
		}
	}
	return out
}

// sameValue pairs layers that hold one value.
func (p *search) sameValue(golden, actual []*node, inOrder bool) []edge {
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
	chains := chain(golden) && chain(actual)
	if inOrder && len(golden) == len(actual) && (chains || p.golden.ordered() && p.actual.ordered()) {
		for i, g := range golden {
			pairs = append(pairs, edge{golden: g, actual: actual[i]})
		}
	}
	return pairs
}

func without(nodes []*node, n *node) []*node {
	return keep(nodes, func(o *node) bool { return o != n })
}

// chain sorts layers that lie one inside of the other, the innermost first; false for others.
func chain(nodes []*node) bool {
	sorted := slices.SortedStableFunc(slices.Values(nodes),
		func(a, b *node) int { return label.Depth(b.label) - label.Depth(a.label) })
	for i := 1; i < len(sorted); i++ {
		if !label.Inside(sorted[i-1].label, sorted[i].label) {
			return false
		}
	}
	copy(nodes, sorted)
	return true
}
