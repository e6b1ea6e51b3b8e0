package edit

import (
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
)

// modules read all weights of a module from another one, which has all of them in the same shapes.
func modules(s *site) {
	shapes := map[string]Weight{}
	var others []string
	for _, w := range s.weights {
		if !w.ofModel() {
			continue
		}
		shapes[w.Name] = w
		if m := moduleOf(w.Name); m != "" && !slices.Contains(others, m) {
			others = append(others, m)
		}
	}
	for _, own := range grouped(s.taken(), func(id program.ID) (string, bool) {
		m := moduleOf(s.Values[id].Weight)
		return m, m != ""
	}) {
		if len(own) < 2 {
			continue // its weight alone is tried elsewhere
		}
		m, n := moduleOf(s.Values[own[0]].Weight), 0
		for _, other := range nearestFirst(m, others) {
			to := map[program.ID]Weight{}
			for _, id := range own {
				w, ok := shapes[other+strings.TrimPrefix(s.Values[id].Weight, m)]
				if ok && slices.Equal(w.Shape, s.Values[id].Shape) {
					to[id] = w
				}
			}
			if other == m || len(to) < len(own) || n == mostWeights {
				continue
			}
			n++
			s.weightsOf(m, other, to)
		}
	}
}

// weightsOf reads weights from another module.
func (s *site) weightsOf(m, other string, to map[program.ID]Weight) {
	of := slices.Collect(maps.Keys(to))
	s.instead("weight", 3, text("%s → %s", m, other), s.takers(of...), of, func(w *writer, id program.ID) program.ID {
		return w.outside(program.Value{Shape: to[id].Shape, DType: to[id].DType, Weight: to[id].Name})
	}).Weight = m
}

// moduleOf is the module that has a weight; "" for none.
func moduleOf(weight string) string {
	if weight == "" {
		return ""
	}
	return label.Parent(weight)
}

// nearestFirst puts modules of the same role in other layers first, then those of the same parent.
func nearestFirst(m string, others []string) []string {
	rank := func(x string) int {
		switch {
		case role(x) == role(m):
			return 0
		case label.Parent(x) == label.Parent(m):
			return 1
		}
		return 2
	}
	out := slices.Clone(others)
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}
