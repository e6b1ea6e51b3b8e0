package match

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// byLayout pairs layers that hold one value in two layouts: the axes in another order, as heads before
// tokens, or the last row of each sequence alone, as the end of a generating model may have it.
func (p *search) byLayout() {
	type class struct{ golden, actual []*node } // that hold one value
	classes := map[*value]*class{}
	var order []*class
	golden, actual := p.few(p.golden), p.few(p.actual)
	for _, a := range actual {
		for _, g := range golden {
			if !p.isMoved(g, a) {
				continue
			}
			c := classes[g.value]
			if c == nil {
				c = &class{}
				classes[g.value], order = c, append(order, c)
			}
			if !slices.Contains(c.golden, g) {
				c.golden = append(c.golden, g)
			}
			if !slices.Contains(c.actual, a) {
				c.actual = append(c.actual, a)
			}
		}
	}
	var pairs []edge
	for _, c := range order {
		pairs = append(pairs, p.sameValue(c.golden, c.actual, true)...)
	}
	p.generalise(pairs, byLayout)
}

// few returns layers whose values the other run may have in another layout, of the first blocks.
func (p *search) few(c *contents) (out []*node) {
	tried := map[string]int{}
	for _, n := range c.layers {
		if n.free() && !n.idle && n.value != nil && !n.accounted() && tried[n.key()] < maxTries && len(out) < maxOpen {
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
	if g.value.n != a.value.n || g.value.n > maxWhole || max(axes(g.out.shape), axes(a.out.shape)) < 3 ||
		!p.momentsOf(g).near(p.momentsOf(a), p.tolerance) {
		return false
	}
	order := g.value.transposed(a.out.tensor, p.tolerance)
	p.turned[[2]*node{g, a}] = order
	return order != nil
}

// transposed returns the order of axes in which a tensor holds a value; nil if there is none.
func (v *value) transposed(t *tensor.Tensor, tolerance float64) []int {
	if len(t.Shape()) > 4 {
		return nil
	}
	for _, order := range orders(len(t.Shape())) {
		turned, err := layout.View{{Kind: layout.Transpose, Order: order}}.Apply(t)
		if err != nil {
			continue
		}
		if o := sampleOf(turned, layout.Padding{}); o != nil && v.near(o, tolerance) && v.distance(o) <= tolerance {
			return order
		}
	}
	return nil
}

// orders lists the orders of n axes but the natural one.
func orders(n int) (out [][]int) {
	var extend func(order []int)
	extend = func(order []int) {
		if len(order) == n && !slices.IsSorted(order) {
			out = append(out, slices.Clone(order))
		}
		for i := range n {
			if !slices.Contains(order, i) {
				extend(append(order, i))
			}
		}
	}
	extend(nil)
	return out
}

// axes counts the axes that are longer than 1.
func axes(shape []int) int { return len(keep(shape, func(size int) bool { return size > 1 })) }

// moments are sums over all elements, in whichever order these lie.
type moments struct{ sum, abs, square float64 }

func (p *search) momentsOf(n *node) moments {
	if m, ok := p.moments[n]; ok {
		return m
	}
	var m moments
	buf := make([]float64, 4096)
	t := n.out.tensor
	for at := 0; at < t.Len(); at += len(buf) {
		for _, x := range buf[:t.Float64s(buf, at)] {
			m.sum, m.abs, m.square = m.sum+x, m.abs+math.Abs(x), m.square+x*x
		}
	}
	p.moments[n] = m
	return m
}

// near reports whether the moments of two tensors differ by no more than their values may.
func (m moments) near(o moments, tolerance float64) bool {
	within := func(a, b, scale float64) bool { return math.Abs(a-b) <= 4*tolerance*scale }
	return within(m.square, o.square, m.square) && within(m.sum, o.sum, m.abs) && within(m.abs, o.abs, m.abs)
}
