package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// modules read all weights of a module from another one, which has all of them in the same shapes: first from those of the
// same role in other layers, then from those of the same parent.
func modules(s *site) {
	weights := map[string]Weight{}
	var others []string
	for _, w := range s.weights {
		if m := label.Parent(w.Name); w.ofModel() {
			if weights[w.Name] = w; m != "" && !slices.Contains(others, m) {
				others = append(others, m)
			}
		}
	}
	for _, own := range grouped(s.taken(), func(id program.ID) (string, bool) {
		m := label.Parent(s.Values[id].Weight)
		return m, m != ""
	}) {
		if len(own) < 2 {
			continue // its weight alone is tried elsewhere
		}
		m, n := label.Parent(s.Values[own[0]].Weight), 0
		near := func(x string) int {
			switch {
			case role(x) == role(m):
				return 0
			case label.Parent(x) == label.Parent(m):
				return 1
			}
			return 2
		}
		for _, other := range slices.SortedStableFunc(slices.Values(others), func(a, b string) int { return near(a) - near(b) }) {
			of := func(id program.ID) Weight { return weights[other+strings.TrimPrefix(s.Values[id].Weight, m)] }
			if n == mostWeights || other == m || slices.ContainsFunc(own, func(id program.ID) bool {
				return of(id).Name == "" || !slices.Equal(of(id).Shape, s.shape(id))
			}) {
				continue
			}
			n++
			s.instead("weight", 3, text("%s → %s", m, other), s.takers(own...), own, func(w *writer, id program.ID) program.ID {
				return w.outside(program.Value{Shape: of(id).Shape, DType: of(id).DType, Weight: of(id).Name})
			}).Weight = m
		}
	}
}

// experts puts weights that lie stacked in one, as those of experts, in other orders, and leaves one of them out: each
// weight by itself, and all together.
func experts(s *site) {
	for _, all := range grouped(s.taken(), func(id program.ID) (int, bool) {
		shape := slices.Concat(s.shape(id), []int{0})
		return shape[0], len(shape) == 4 && shape[0] > 1 && shape[0] <= mostStacked
	}) {
		n := s.shape(all[0])[0]
		for _, set := range andEach(all) {
			name := ""
			for _, id := range set {
				name += s.Values[id].Weight + ", "
			}
			add := func(cost int, what string, f change) {
				s.instead("layout", cost, name+what, s.takers(set...), set, f).ID = "moe/expert-order"
			}
			next := append(upTo(n)[1:], 0)
			before := append([]int{n - 1}, upTo(n-1)...)
			for _, order := range append(orders(n), next, before) {
				add(4, text("in the order %v", order), func(w *writer, id program.ID) program.ID { return w.selected(id, 0, order) })
			}
			for k := range n {
				add(3, text("with number %d of zeros", k), func(w *writer, id program.ID) program.ID {
					keep := slices.Repeat([]float64{1}, n)
					keep[k] = 0
					return w.two("mul", id, w.numbers(tensor.F32, []int{n, 1, 1}, func() []float64 { return keep }))
				})
			}
		}
	}
}
