package names

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/layout"
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
	at, _ := slices.BinarySearchFunc(list, v.proj[0]-reach*tolerance, func(o *value, p float64) int { return cmp.Compare(o.proj[0], p) })
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
func (p *proposing) equate() {
	golden, actual := newIndex(p.golden.values), newIndex(p.actual.values)
	for _, g := range p.golden.values {
		a := actual.nearest(g, p.tolerance)
		if a == nil {
			continue
		}
		if golden.nearest(a, p.tolerance) == g {
			g.other, a.other = a, g
		}
	}
}

// related counts the different values that are in both runs and hold something of the model.
func (p *proposing) related() (n int) {
	for _, g := range p.golden.values {
		if g.other != nil && !g.table && !g.other.table {
			n++
		}
	}
	return n
}

// fits reports whether the outputs of two layers may be one tensor by type and shape.
func (p *proposing) fits(g, a *layer) bool {
	if g.out == nil || a.out == nil || g.out.DType.Kind() != a.out.DType.Kind() {
		return false
	}
	_, ok := p.padding.Fit(g.out.Shape, a.out.Shape, layout.Allow{LastRow: p.opt.Generating})
	return ok
}

// equal reports whether two layers hold one value.
func equal(g, a *layer) bool { return g.value != nil && a.value != nil && g.value.other == a.value }

// accounted reports whether a layer of the other run holds the value.
func (l *layer) accounted() bool {
	return l.value != nil && l.value.other != nil && len(l.value.other.from) > 0
}

// given reports whether the other run has the value as an input alone: no layer there makes it.
func (l *layer) given() bool { return l.value != nil && l.value.other != nil && !l.accounted() }
