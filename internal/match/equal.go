package match

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/goparity/goparity/internal/layout"
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
	var pairs []edge
	for _, v := range p.golden.values {
		if v.other != nil {
			pairs = append(pairs, p.sameValue(free(v.from), free(v.other.from))...)
		}
	}
	p.generalise(pairs, by)
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
	if len(golden) == len(actual) && !p.golden.byName && !p.actual.byName {
		for i, g := range golden {
			pairs = append(pairs, edge{golden: g, actual: actual[i]})
		}
	}
	return pairs
}

// equateMoved marks the values that are one in two layouts: the axes in another order, as heads
// before tokens, or the last row of each sequence alone, as the end of a generating model may have
// it.
func (p *search) equateMoved() {
	actual := p.actual.few()
	for _, g := range p.golden.few() {
		for _, a := range actual {
			if !g.accounted() && !a.accounted() && p.isMoved(g, a) {
				g.value.other, a.value.other = a.value, g.value
			}
		}
	}
}

// few returns layers whose values the other run may have in another layout, of the first blocks.
func (s *side) few() (out []*node) {
	tried := map[string]int{}
	for _, n := range s.layers {
		if n.free() && n.value != nil && !n.accounted() && tried[n.key()] < maxTries && len(out) < maxOpen {
			tried[n.key()]++
			out = append(out, n)
		}
	}
	return out
}

// isMoved reports whether two layers hold one value in two layouts.
func (p *search) isMoved(g, a *node) bool {
	if layout.IsLastRow(g.out.shape, a.out.shape) {
		f, _ := p.padding.Fit(g.out.shape, a.out.shape, layout.Allow{LastRow: true})
		last, err := f.Golden.Apply(g.out.tensor)
		if err != nil {
			return false
		}
		v := sampleOf(last, layout.Padding{})
		return v != nil && v.distance(a.value) <= p.tolerance
	}
	rank := len(a.out.shape)
	if g.value.n != a.value.n || g.value.n > maxWhole || max(axes(g.out.shape), axes(a.out.shape)) < 3 || rank > 4 ||
		math.Abs(g.whole()-a.whole()) > 2*p.tolerance*g.whole() {
		return false
	}
	for _, order := range combin.Permutations(rank, rank) {
		turned, err := layout.View{{Kind: layout.Transpose, Order: order}}.Apply(a.out.tensor)
		if slices.IsSorted(order) || err != nil {
			continue
		}
		if v := sampleOf(turned, layout.Padding{}); v != nil && g.value.distance(v) <= p.tolerance {
			a.value.axes = order
			return true
		}
	}
	return false
}

// axes counts the axes that are longer than 1.
func axes(shape []int) int { return len(keep(shape, func(size int) bool { return size > 1 })) }

// whole is the norm of all elements, in whichever order these lie.
func (n *node) whole() float64 {
	if n.norm == 0 {
		buf := make([]float64, n.out.tensor.Len())
		n.out.tensor.Float64s(buf, 0)
		n.norm = floats.Norm(buf, 2)
	}
	return n.norm
}
