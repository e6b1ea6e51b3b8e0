package names

import (
	"math"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// turn finds layers that hold one value with the axes in another order, as heads before tokens.
func (p *proposing) turn() {
	moments := map[*layer]moments{}
	for _, s := range []*side{p.golden, p.actual} {
		tried := map[string]int{}
		for _, l := range s.layers {
			if l.free() && !l.idle && l.value != nil && l.value.n <= maxWhole && tried[l.key()] < maxTries && len(moments) < 2*maxOpen {
				tried[l.key()]++
				moments[l] = momentsOf(l.out.Tensor)
			}
		}
	}
	var votes []vote
	for _, g := range p.golden.layers {
		mg, ok := moments[g]
		if !ok {
			continue
		}
		for _, a := range p.actual.layers {
			ma, ok := moments[a]
			if !ok || !a.free() || g.value.n != a.value.n || max(axes(g.out.Shape), axes(a.out.Shape)) < 3 || !mg.near(ma, p.tolerance) {
				continue
			}
			order := g.value.transposed(a.out.Tensor, p.tolerance)
			if order == nil || g.words.contradict(a.words) {
				continue
			}
			p.turned[[2]*layer{g, a}] = match.Rule{Transpose: order}
			votes = append(votes, vote{g, a})
			break
		}
	}
	p.generalise(votes, byLayout)
}

// axes counts the axes that are longer than 1.
func axes(shape []int) (n int) {
	for _, size := range shape {
		if size > 1 {
			n++
		}
	}
	return n
}

// moments are sums over all elements, in whichever order these lie.
type moments struct{ sum, abs, square, cube, most, least float64 }

func momentsOf(t *tensor.Tensor) (m moments) {
	buf := make([]float64, 4096)
	m.most, m.least = math.Inf(-1), math.Inf(1)
	for at := 0; at < t.Len(); {
		n := t.Float64s(buf[:min(len(buf), t.Len()-at)], at)
		for _, x := range buf[:n] {
			m.sum += x
			m.abs += math.Abs(x)
			m.square += x * x
			m.cube += x * x * x
			m.most, m.least = max(m.most, x), min(m.least, x)
		}
		at += n
	}
	return m
}

// near reports whether the moments of two tensors differ by no more than their values may.
func (m moments) near(o moments, tolerance float64) bool {
	within := func(a, b, scale float64) bool { return math.Abs(a-b) <= 4*tolerance*scale }
	size := max(math.Abs(m.most), math.Abs(m.least))
	return within(m.square, o.square, m.square) && within(m.sum, o.sum, m.abs) && within(m.abs, o.abs, m.abs) &&
		within(m.cube, o.cube, m.square*size) && within(m.most, o.most, size*math.Sqrt(m.square)/size) && within(m.least, o.least, math.Sqrt(m.square))
}
