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
	byCount := map[int][]program.ID{}
	var counts []int
	for i, v := range s.Values {
		if id := program.ID(i); v.Weight != "" && len(v.Shape) == 3 && v.Shape[0] > 1 && v.Shape[0] <= mostStacked && s.Maker(id) < 0 && len(s.takers(id)) > 0 {
			if n := v.Shape[0]; byCount[n] == nil {
				counts = append(counts, n)
			}
			byCount[v.Shape[0]] = append(byCount[v.Shape[0]], id)
		}
	}
	for _, n := range counts {
		all := byCount[n]
		sets := [][]program.ID{all}
		for _, id := range all {
			if len(all) > 1 {
				sets = append(sets, []program.ID{id})
			}
		}
		for _, set := range sets {
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
	order := make([]int, n)
	for i := range order {
		order[i] = (i + k) % n
	}
	return order
}
