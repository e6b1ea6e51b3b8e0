package match

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/goparity/goparity/internal/layout"
)

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
