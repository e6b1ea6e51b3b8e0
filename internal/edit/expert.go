package edit

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// experts puts weights that lie stacked in one, as those of experts, in other orders, and leaves one of them out: each
// weight by itself, and all together.
func experts(s *site) {
	for _, all := range grouped(s.taken(), func(id program.ID) (int, bool) {
		shape := slices.Concat(s.shape(id), []int{0})
		return shape[0], len(shape) == 4 && shape[0] > 1 && shape[0] <= mostStacked
	}) {
		n := s.shape(all[0])[0]
		for _, set := range andEach(all) {
			for _, order := range append(orders(n), rolled(n, 1), rolled(n, n-1)) {
				s.stacked(set, fmt.Sprintf("in the order %v", order), 4, func(w *writer, id program.ID) program.ID {
					return w.selected(id, 0, order)
				})
			}
			for k := range n {
				s.stacked(set, fmt.Sprintf("with number %d of zeros", k), 3, func(w *writer, id program.ID) program.ID {
					keep := slices.Repeat([]float64{1}, n)
					keep[k] = 0
					return w.call("mul", id, nil, "self", id, "other", w.numbers(keep, []int{n, 1, 1}, tensor.F32))
				})
			}
		}
	}
}

// stacked gives the operators that take weights others in their place.
func (s *site) stacked(set []program.ID, what string, cost int, f change) {
	name := ""
	for _, id := range set {
		name += s.Values[id].Weight + ", "
	}
	s.instead("layout", cost, name+what, s.takers(set...), set, f).ID = "moe/expert-order"
}

// rolled is the order in which each of n comes k places later.
func rolled(n, k int) []int {
	order := upTo(n)
	return append(order[k:], order[:k]...)
}
