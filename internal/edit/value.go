package edit

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

const (
	// moving are operators that calculate nothing.
	moving = "detach clone alias view expand slice select transpose permute unsqueeze squeeze _to_copy cat stack"
	// elementwise are operators whose results lie as what they take.
	elementwise = "mul div add sub tanh where masked_fill _to_copy view _unsafe_view clone maximum expand detach alias"
	// choosing are operators that make places of numbers.
	choosing = "topk sort argsort argmax argmin"
)

// results does something to the result of an operator, the first where there are several, as of topk.
func results(s *site) {
	o := s.first()
	v, _ := s.result(o)
	if v.DType == tensor.Invalid || isOne(o, copying+" view") {
		return
	}
	s.changes(o.Out[0], func(kind string, cost int, what string, f change) {
		s.then(kind, cost, what+" the result of "+o.Name, f)
	})
}

// roundings round what an operator takes, too.
func roundings(s *site) {
	o := s.first()
	if v, ok := s.result(o); !ok || !isFloat(v) || isOne(o, moving) {
		return
	}
	for _, d := range narrow {
		what := text("%s: what %s takes and makes", d, o.Name)
		s.add("rounding", 6, what, func(w *writer, o program.Op) { w.narrowed(o, d, false) })
		if slices.ContainsFunc(o.Args, func(a program.Arg) bool { return isBias(o, a) }) {
			s.add("rounding", 6, what+", but for its bias", func(w *writer, o program.Op) { w.narrowed(o, d, true) })
		}
	}
}

// Root is the operator that calculated what one makes: that before it, where it only moves numbers; −1 for what comes from
// outside.
func Root(p *program.Piece, op int) int {
	for op >= 0 && isOne(p.Ops[op], moving) {
		ids := p.Operands(op)
		if len(ids) == 0 || slices.ContainsFunc(ids, func(id program.ID) bool { return id != ids[0] && size(p.Values[id].Shape) > 0 }) {
			return op
		}
		op = p.Maker(ids[0])
	}
	return op
}

// onlyChosen reports whether nothing but places is made of a value. Where it is one number everywhere, it is always the
// first that is chosen, and many edits do as well.
func (s *site) onlyChosen(id program.ID) bool {
	takers := s.takers(id)
	return id != s.Out && len(takers) > 0 && !slices.ContainsFunc(takers, func(t int) bool {
		o := s.Ops[t]
		through := isOne(o, moving+" "+elementwise) && len(o.Out) == 1
		return !isOne(o, choosing) && !(through && s.onlyChosen(o.Out[0]))
	})
}

// given does the same to what comes from outside: weights, and what was recorded, and reads other weights in
// their place.
func given(s *site) {
	for i, v := range s.Values {
		id := program.ID(i)
		if s.Maker(id) >= 0 || id != s.Out && len(s.takers(id)) == 0 {
			continue
		}
		if v.DType == tensor.Bool || !isFloat(v) && v.DType.Size() > 0 && s.isMask(id) {
			for _, all := range []int{1, 0} {
				s.outside(id, "mask", 1, text("%s %d everywhere", Name(s.Piece, id), all), func(w *writer, id program.ID) program.ID {
					return w.call("full", id, nil, "size", w.value(id).Shape, "fill_value", all)
				})
			}
		}
		s.changes(id, func(kind string, cost int, what string, f change) {
			s.outside(id, kind, cost, what+" "+Name(s.Piece, id), f)
		})
		for _, x := range s.readable(v) {
			s.outside(id, "weight", 3, text("%s → %s", v.Weight, x.Name), func(w *writer, _ program.ID) program.ID {
				return w.outside(program.Value{Shape: v.Shape, DType: v.DType, Weight: x.Name})
			})
		}
	}
}

// isMask reports whether a value has nothing but zero and one.
func (s *site) isMask(id program.ID) bool {
	x := s.Value(id)
	return x != nil && x.Len() > 1 && !slices.ContainsFunc(x.Floats(), func(v float64) bool { return v != 0 && v != 1 })
}

// takers lists the operators that take one of some values.
func (s *site) takers(ids ...program.ID) (list []int) {
	for i := range s.Ops {
		if slices.ContainsFunc(s.Operands(i), func(id program.ID) bool { return slices.Contains(ids, id) }) {
			list = append(list, i)
		}
	}
	return list
}

// taken lists the weights that operators take.
func (s *site) taken() (ids []program.ID) {
	for i, v := range s.Values {
		if id := program.ID(i); v.Weight != "" && s.Maker(id) < 0 && len(s.takers(id)) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// readable lists the weights that may be read in place of one: of its shape, those of its role in other layers
// first, then its neighbours.
func (s *site) readable(v program.Value) []Weight {
	dir := func(name string, up int) string {
		name = strings.ReplaceAll(name, ".", "/")
		for range up {
			name = path.Dir(name)
		}
		return name
	}
	near := func(name string) int {
		switch {
		case role(name) == role(v.Weight):
			return 0
		case dir(name, 1) == dir(v.Weight, 1):
			return 1
		case dir(name, 2) == dir(v.Weight, 2):
			return 2
		case len(numbersIn(name)) == 0 && len(numbersIn(v.Weight)) == 0: // the head and the embedding
			return 3
		}
		return 4
	}
	all := slices.DeleteFunc(slices.Clone(s.weights), func(x Weight) bool {
		return v.Weight == "" || !x.ofModel() || x.Name == v.Weight || !slices.Equal(x.Shape, v.Shape) || near(x.Name) == 4
	})
	slices.SortStableFunc(all, func(a, b Weight) int { return near(a.Name) - near(b.Name) })
	return all[:min(len(all), mostWeights)]
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

// changes lists what may be done to a value.
func (s *site) changes(id program.ID, add func(kind string, cost int, what string, f change)) {
	v := s.Values[id]
	if len(v.Shape) <= mostAxes {
		s.layouts(v, func(what string, f change) { add("layout", 5, what+" of", f) })
	}
	if !isFloat(v) {
		return
	}
	chosen, n := s.onlyChosen(id), len(v.Shape)
	for _, x := range values {
		if !(x.constant && chosen) && !(x.ofLines && (n == 0 || v.Shape[n-1] == 1)) {
			add("value", 4, x.what, x.do)
		}
	}
	for _, d := range narrow {
		add("rounding", 6, d.String()+":", func(w *writer, id program.ID) program.ID { return w.rounded(id, d) })
	}
}

// values do something to every element.
var values = []struct {
	what     string
	constant bool // all elements are one number then
	ofLines  bool // it hangs on the others of the last axis
	do       change
}{
	{"0 times", true, false, times(0)}, {"-1 times", false, false, times(-1)}, {"2 times", false, false, times(2)}, {"0.5 times", false, false, times(0.5)},
	{"1 +", false, false, func(w *writer, x program.ID) program.ID { return w.two("add", x, 1) }},
	{"the square of", false, false, func(w *writer, x program.ID) program.ID { return w.two("mul", x, x) }},
	{"1 in place of", true, false, func(w *writer, x program.ID) program.ID { return w.two("add", w.two("mul", x, 0.0), 1) }},
	{"without its mean,", false, true, func(w *writer, x program.ID) program.ID { return w.two("sub", x, w.along("mean", x, -1)) }},
	{"divided by its sum,", false, true, func(w *writer, x program.ID) program.ID { return w.two("div", x, w.along("sum", x, -1)) }},
	{"divided by its norm,", false, true, func(w *writer, x program.ID) program.ID {
		return w.two("div", x, w.along("linalg_vector_norm", x, -1))
	}},
	{"the softmax of", false, true, (*writer).softmax},
}

func times(c float64) change {
	return func(w *writer, x program.ID) program.ID { return w.two("mul", x, c) }
}
