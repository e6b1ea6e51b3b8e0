package edit

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// bypass makes the result of an operator an earlier value: everything between is left out.
func bypass(s *site) {
	o := s.first()
	v, ok := s.result(o)
	if !ok || len(s.group) > 1 {
		return
	}
	for n, id := range s.alike(v, s.group[0], o.Out[0]) {
		if n == mostValues {
			break
		}
		s.add("bypass", 2, text("the result of %s is %s", o.Name, Name(s.Piece, id)), func(w *writer, o program.Op) { w.pass(o, id) })
	}
}

// nearer gives an operator what its operand is made of: what is done to it is left out there alone, wherever else it goes.
func nearer(s *site) {
	o := s.first()
	for _, a := range o.Args {
		id, ok := a.Value.(program.ID)
		if !ok || id == program.None || len(s.takers(id)) < 2 {
			continue
		}
		for k, x := range s.madeOf(id, within) {
			if v, w := s.Values[x], s.Values[id]; !slices.Equal(v.Shape, w.Shape) || isFloat(v) != isFloat(w) || v.Weight != "" {
				continue
			}
			s.add("source", 2, text("%s of %s: %s → %s", a.Name, o.Name, Name(s.Piece, id), Name(s.Piece, x)), func(w *writer, o program.Op) {
				own, _ := o.Args.Get(a.Name).(program.ID)
				if from := s.madeOf(own, within); k < len(from) {
					w.give(o, a.Name, from[k])
				} else {
					w.failed = true
				}
			})
		}
	}
}

// madeOf lists what a value is made of, within some operators, the nearest first.
func (s *site) madeOf(id program.ID, within int) (out []program.ID) {
	if i := s.Maker(id); i >= 0 && within > 0 {
		out = append(out, s.Operands(i)...)
		for _, x := range s.Operands(i) {
			out = append(out, s.madeOf(x, within-1)...)
		}
	}
	return out
}

// ofLine gives all operators of one line another value in the place of one that they take.
func ofLine(s *site) {
	for i, v := range s.Values {
		id := program.ID(i)
		lines := grouped(s.takers(id), func(t int) (line int, ok bool) {
			f := Frame(s.Piece, t)
			if f < 0 {
				return 0, false
			}
			return s.Frames[f].Line, true
		})
		for _, at := range lines {
			if len(at) < 2 || len(at) > mostTakers {
				continue
			}
			for n, other := range s.alike(v, at[0], id) {
				if n == mostNear {
					break
				}
				s.instead("source", 3, text("%s → %s in the line", Name(s.Piece, id), Name(s.Piece, other)), at, []program.ID{id},
					func(*writer, program.ID) program.ID { return other })
			}
		}
	}
}

// alike lists the values of a shape that exist before an operator, the latest first.
func (s *site) alike(v program.Value, before int, not program.ID) (ids []program.ID) {
	for i, x := range slices.Backward(s.Values) {
		id := program.ID(i)
		if m := s.Maker(id); id != not && m < before && slices.Equal(x.Shape, v.Shape) && isFloat(x) == isFloat(v) {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b program.ID) int { return s.Maker(b) - s.Maker(a) })
	return ids
}

// results does something to the result of an operator, the first where there are several, as of topk.
func results(s *site) {
	o := s.first()
	v, _ := s.result(o)
	if v.DType == tensor.Invalid || slices.Contains([]string{"detach", "clone", "alias", "view"}, o.Name) {
		return
	}
	chosen := s.onlyChosen(o.Out[0])
	s.changes(v, func(kind string, cost int, what string, f change) {
		if !chosen || !slices.Contains(constants, what) {
			s.then(kind, cost, what+" the result of "+o.Name, f)
		}
	})
}

// roundings round what an operator takes, too.
func roundings(s *site) {
	o := s.first()
	if v, ok := s.result(o); !ok || !isFloat(v) || slices.Contains(moves, o.Name) {
		return
	}
	for _, d := range narrow {
		s.add("rounding", 6, text("%s: what %s takes and makes", d, o.Name), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
		if slices.ContainsFunc(o.Args, func(a program.Arg) bool { _, ok := a.Value.(program.ID); return ok && isBias(o, a.Name) }) {
			s.add("rounding", 6, text("%s: what %s takes and makes, but for its bias", d, o.Name), func(w *writer, o program.Op) { w.narrowed(o, d, true) })
		}
	}
}

// moves are operators that calculate nothing.
var moves = []string{"detach", "clone", "alias", "view", "expand", "slice", "select", "transpose", "permute", "unsqueeze", "squeeze", "_to_copy", "cat", "stack"}

// Root is the operator that calculated what one makes: that before it, where it only moves numbers; −1 for what comes from
// outside.
func Root(p *program.Piece, op int) int {
	for op >= 0 && slices.Contains(moves, p.Ops[op].Name) {
		ids := p.Ops[op].Operands()
		if len(ids) == 0 || slices.ContainsFunc(ids, func(id program.ID) bool { return id != ids[0] && size(p.Values[id].Shape) > 0 }) {
			return op
		}
		op = p.Maker(ids[0])
	}
	return op
}

// constants are the changes after which all elements are one number. Where that is only chosen from, it is always the first
// that is chosen, and many edits do as well.
var constants = []string{"0 times", "1 in place of"}

// choices are operators that make places of numbers.
var choices = []string{"topk", "sort", "argsort", "argmax", "argmin"}

// onlyChosen reports whether nothing but places is made of a value.
func (s *site) onlyChosen(id program.ID) bool {
	takers := s.takers(id)
	return id != s.Out && len(takers) > 0 && !slices.ContainsFunc(takers, func(t int) bool {
		o := s.Ops[t]
		through := slices.Contains(moves, o.Name) || slices.Contains(elementwise, o.Name)
		return !slices.Contains(choices, o.Name) && !(through && len(o.Out) == 1 && s.onlyChosen(o.Out[0]))
	})
}

// given does the same to what comes from outside: weights, and what was recorded, and reads other weights in
// their place.
func given(s *site) {
	used := map[program.ID]bool{s.Out: true}
	for i := range s.Ops {
		for _, id := range s.Ops[i].Operands() {
			used[id] = true
		}
	}
	for i, v := range s.Values {
		id := program.ID(i)
		if s.Maker(id) >= 0 || !used[id] {
			continue
		}
		if v.DType == tensor.Bool || !isFloat(v) && v.DType.Size() > 0 && s.isMask(id) {
			for _, all := range []int{1, 0} {
				s.outside(id, "mask", 1, text("%s %d everywhere", Name(s.Piece, id), all), func(w *writer, id program.ID) program.ID {
					return w.call("full", id, nil, "size", w.value(id).Shape, "fill_value", all)
				})
			}
		}
		chosen := s.onlyChosen(id)
		s.changes(v, func(kind string, cost int, what string, f change) {
			if chosen && slices.Contains(constants, what) {
				return
			}
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
func (s *site) readable(v program.Value) (out []Weight) {
	if v.Weight == "" {
		return nil
	}
	for _, near := range []func(name string) bool{
		func(name string) bool { return role(name) == role(v.Weight) },
		func(name string) bool {
			return role(name) != role(v.Weight) && path.Dir(dots(name)) == path.Dir(dots(v.Weight))
		},
		func(name string) bool {
			return role(name) != role(v.Weight) && path.Dir(path.Dir(dots(name))) == path.Dir(path.Dir(dots(v.Weight)))
		},
		func(name string) bool { return len(numbersIn(name)) == 0 && len(numbersIn(v.Weight)) == 0 }} { // the head and the embedding
		for _, x := range s.weights {
			if x.ofModel() && x.Name != v.Weight && slices.Equal(x.Shape, v.Shape) && near(x.Name) && len(out) < mostWeights &&
				!slices.ContainsFunc(out, func(y Weight) bool { return y.Name == x.Name }) {
				out = append(out, x)
			}
		}
	}
	return out
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

func dots(name string) string { return strings.ReplaceAll(name, ".", "/") }

// change writes what is done to a value.
type change func(w *writer, id program.ID) program.ID

// changes lists what may be done to a value.
func (s *site) changes(v program.Value, add func(kind string, cost int, what string, f change)) {
	if len(v.Shape) <= mostAxes {
		s.layouts(v, func(what string, f change) { add("layout", 5, what+" of", f) })
	}
	if !isFloat(v) {
		return
	}
	s.values(v, func(what string, f change) { add("value", 4, what, f) })
	for _, d := range narrow {
		add("rounding", 6, d.String()+":", func(w *writer, id program.ID) program.ID { return w.rounded(id, d) })
	}
}

// values do something to every element.
func (s *site) values(v program.Value, add func(what string, f change)) {
	times := func(w *writer, id program.ID, c float64) program.ID {
		return w.call("mul", id, nil, "self", id, "other", c)
	}
	plus := func(w *writer, id program.ID) program.ID {
		return w.call("add", id, nil, "self", id, "other", 1, "alpha", 1)
	}
	for _, c := range []float64{0, -1, 2, 0.5} {
		add(text("%g times", c), func(w *writer, id program.ID) program.ID { return times(w, id, c) })
	}
	add("1 +", plus)
	add("the square of", func(w *writer, id program.ID) program.ID { return w.call("mul", id, nil, "self", id, "other", id) })
	add("1 in place of", func(w *writer, id program.ID) program.ID { return plus(w, times(w, id, 0)) })
	n := len(v.Shape)
	if n == 0 || v.Shape[n-1] == 1 {
		return
	}
	one := func(w *writer, id program.ID) []int {
		shape := slices.Clone(w.value(id).Shape)
		if w.failed = w.failed || len(shape) == 0; !w.failed {
			shape[len(shape)-1] = 1
		}
		return shape
	}
	add("without its mean,", func(w *writer, id program.ID) program.ID {
		mean := w.call("mean", id, one(w, id), "self", id, "dim", []int{-1}, "keepdim", true)
		return w.call("sub", id, nil, "self", id, "other", mean, "alpha", 1)
	})
	add("divided by its sum,", func(w *writer, id program.ID) program.ID {
		sum := w.call("sum", id, one(w, id), "self", id, "dim", []int{-1}, "keepdim", true)
		return w.call("div", id, nil, "self", id, "other", sum)
	})
	add("divided by its norm,", func(w *writer, id program.ID) program.ID {
		norm := w.call("linalg_vector_norm", id, one(w, id), "self", id, "ord", 2.0, "dim", []int{-1}, "keepdim", true)
		return w.call("div", id, nil, "self", id, "other", norm)
	})
	add("the softmax of", func(w *writer, id program.ID) program.ID {
		return w.call("_softmax", id, nil, "self", id, "dim", -1, "half_to_float", false)
	})
}
