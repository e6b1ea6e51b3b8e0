package edit

import (
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// readable lists the weights that may be read in place of one: of its shape, those of its role in other layers
// first, then its neighbours.
func (s *site) readable(v program.Value) []Weight {
	all := slices.DeleteFunc(slices.Clone(s.weights), func(x Weight) bool {
		return v.Weight == "" || !x.ofModel() || x.Name == v.Weight || !slices.Equal(x.Shape, v.Shape) || far(x.Name, v.Weight) == 4
	})
	slices.SortStableFunc(all, func(a, b Weight) int { return far(a.Name, v.Weight) - far(b.Name, v.Weight) })
	return all[:min(len(all), mostWeights)]
}

// far is how far two names are apart: 0 for one role in several layers, 4 for no relation.
func far(a, b string) int {
	switch up := label.Parent; {
	case role(a) == role(b):
		return 0
	case up(a) == up(b):
		return 1
	case up(up(a)) == up(up(b)):
		return 2
	case len(numbersIn(a)) == 0 && len(numbersIn(b)) == 0: // the head and the embedding
		return 3
	}
	return 4
}

// role is the name of a weight without the numbers of layers.
func role(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '#'
		}
		return r
	}, name)
}

// numbersIn lists the numbers in a name.
func numbersIn(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsDigit(r) })
}

// modules read all weights of a module from another one, which has all of them in the same shapes: first from those of the
// same role in other layers, then from those of the same parent.
func modules(s *site) {
	weights := map[string]Weight{}
	var others, modules []string
	seen, own := map[string]bool{}, map[string][]program.ID{}
	for _, w := range s.weights {
		if w.ofModel() {
			weights[w.Name] = w
			for m := label.Parent(w.Name); m != "" && !seen[m]; m = label.Parent(m) {
				seen[m], others = true, append(others, m)
			}
		}
	}
	for _, id := range s.taken() {
		for m := label.Parent(s.Values[id].Weight); m != ""; m = label.Parent(m) {
			if own[m] == nil {
				modules = append(modules, m)
			}
			own[m] = append(own[m], id)
		}
	}
	for _, m := range modules {
		ids := own[m]
		inner := func(x string) bool { return label.Inside(x, m) && len(own[x]) == len(ids) }
		if len(ids) < 2 || slices.ContainsFunc(modules, inner) {
			continue // its weight alone, or the module inside it, is tried elsewhere
		}
		of := func(id program.ID, other string) Weight {
			return weights[other+strings.TrimPrefix(s.Values[id].Weight, m)]
		}
		alike := slices.DeleteFunc(slices.Clone(others), func(other string) bool {
			return other == m || slices.ContainsFunc(ids, func(id program.ID) bool {
				w := of(id, other)
				return w.Name == "" || !slices.Equal(w.Shape, s.shape(id))
			})
		})
		slices.SortStableFunc(alike, func(a, b string) int { return min(far(a, m), 2) - min(far(b, m), 2) })
		for _, other := range alike[:min(len(alike), mostWeights)] {
			e := s.insteadOf("weight", 3, text("%s → %s", m, other), ids, func(w *writer, id program.ID) program.ID {
				x := of(id, other)
				return w.outside(program.Value{Shape: x.Shape, DType: x.DType, Weight: x.Name})
			})
			switch e.Weight = m; {
			case m != label.Parent(s.Values[ids[0]].Weight): // of several linear layers
				e.ID = "linear/other-layer"
			case !slices.ContainsFunc(ids, func(id program.ID) bool { return len(s.shape(id)) > 1 }):
				e.ID = "norm/weight"
			}
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
			names := strings.Join(mapped(set, s.name), ", ")
			add := func(cost int, what string, f change) {
				s.insteadOf("layout", cost, names+", "+what, set, f).ID = "moe/expert-order"
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

// records gives what takes a value one that was recorded or made elsewhere, and adds such a value to what the piece makes,
// or multiplies with it.
func records(s *site) {
	n, out := 0, s.Values[s.Out]
	for _, r := range s.weights {
		if r.ofModel() || !r.DType.IsFloat() {
			continue
		}
		s.inPlaceOf(r)
		ofResult := s.Maker(s.Out) < 0 && out.Record == r.For // it is given on as it is
		spreads := slices.EqualFunc(r.Shape, out.Shape, func(n, to int) bool { return n == to || n == 1 })
		taken := r.Made == nil && slices.ContainsFunc(s.Values, func(v program.Value) bool { return v.Record == r.Record })
		if r.For > 0 && !ofResult || taken || !isFloat(out) || !spreads {
			continue
		}
		if n++; n > mostRecords {
			continue
		}
		with := func(op string) change {
			return func(w *writer, id program.ID) program.ID { return w.two(op, id, w.elsewhere(r)) }
		}
		s.last("term", 5, text("the result is multiplied with %s", r.Name), with("mul"))
		if slices.Equal(r.Shape, out.Shape) {
			s.last("source", 4, text("the result is %s", r.Name), func(w *writer, _ program.ID) program.ID { return w.elsewhere(r) })
			s.last("term", 5, text("%s is added to the result", r.Name), with("add"))
		}
	}
}

// inPlaceOf lets what takes a value take another of its shape.
func (s *site) inPlaceOf(r Weight) {
	for id, v := range s.values() {
		if r.For > 0 && v.Record != r.For || r.Record > 0 && v.Record == r.Record || v.Weight != "" || !isFloat(v) ||
			!slices.Equal(v.Shape, r.Shape) || s.constant(id) {
			continue
		}
		takers := s.takers(id)
		groups := andEach(takers)
		if len(takers) > mostTakers {
			groups = groups[:1]
		}
		for _, at := range groups {
			if len(at) > 0 {
				s.instead("source", 3, text("%s takes %s in the place of %s", s.Ops[at[0]].Name, r.Name, s.port(id)), at, []program.ID{id},
					func(w *writer, _ program.ID) program.ID { return w.elsewhere(r) }).Was = s.layerOf(v)
			}
		}
	}
}

// elsewhere adds what was recorded or made elsewhere to the patch.
func (w *writer) elsewhere(r Weight) program.ID {
	v := program.Value{Shape: r.Shape, DType: r.DType, Record: r.Record}
	if r.Made != nil {
		w.e.From, w.e.Code = r.Layer, r.Code
		return w.late(v, r.Made)
	}
	return w.outside(v)
}

// ofLine gives all operators of one line another value in the place of one that they take.
func ofLine(s *site) {
	for id, v := range s.values() {
		for _, at := range grouped(s.takers(id), s.line) {
			if len(at) < 2 || len(at) > mostTakers {
				continue
			}
			for _, other := range s.alike(v, at[0], id, mostNear) {
				s.instead("source", 3, text("%s → %s in the line", s.name(id), s.name(other)), at, []program.ID{id},
					func(*writer, program.ID) program.ID { return other })
			}
		}
	}
}

// line is that of the code which an operator runs.
func (s *site) line(op int) (line int, ok bool) {
	if f := Frame(s.Piece, op); f >= 0 {
		return s.Frames[f].Line, true
	}
	return 0, false
}
