package edit

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

const (
	// moving are operators that calculate nothing.
	moving = "view expand slice select transpose permute unsqueeze squeeze _to_copy cat stack"
	// laying are operators that lay a value out otherwise.
	laying = "view permute transpose unsqueeze squeeze expand"
	// elementwise are operators whose results lie as what they take.
	elementwise = "mul div add sub tanh where masked_fill _to_copy view maximum expand"
	// spreading are operators of two operands, of which the smaller is spread over the other.
	spreading = "add sub mul div maximum minimum where masked_fill"
	// choosing are operators that make places of numbers.
	choosing = "topk sort argmax argmin"
)

// results does something to the result of an operator, the first where there are several, as of topk.
func results(s *site) {
	if s.result.DType == tensor.Invalid && !isComplex(s.result) || isOne(s.op, "view") {
		return
	}
	s.changes(s.op.Out[0], func(kind string, cost int, what string, f change) {
		s.then(kind, cost, what+" the result of "+s.op.Name, f)
	})
}

// roundings round what an operator takes, too.
func roundings(s *site) {
	if !s.single || !isFloat(s.result) || isOne(s.op, moving) {
		return
	}
	for _, d := range narrow {
		what := text("%s: what %s takes and makes", d, s.op.Name)
		s.add("rounding", 6, what, func(w *writer, o program.Op) { w.narrowed(o, d, false) })
		if slices.ContainsFunc(s.operands, func(x operand) bool { return isBias(s.op, x.name) }) {
			s.add("rounding", 6, what+", but for its bias", func(w *writer, o program.Op) { w.narrowed(o, d, true) })
		}
	}
}

// given does the same to what comes from outside: weights, and what was recorded, and reads other weights in
// their place.
func given(s *site) {
	for id, v := range s.values() {
		if s.Maker(id) >= 0 || id != s.Out && len(s.takers(id)) == 0 {
			continue
		}
		if v.DType == tensor.Bool || !isFloat(v) && v.DType.Size() > 0 && s.isMask(id) {
			for _, all := range []int{1, 0} {
				s.outside(id, "mask", 1, text("%s %d everywhere", s.name(id), all), filled(all))
			}
		}
		s.changes(id, func(kind string, cost int, what string, f change) {
			s.outside(id, kind, cost, what+" "+s.name(id), f)
		})
		if v.Weight != "" && len(v.Shape) > 1 && isFloat(v) {
			s.inEightBits(id)
		}
		for _, x := range s.readable(v) {
			s.outside(id, "weight", 3, text("%s → %s", v.Weight, x.Name), func(w *writer, _ program.ID) program.ID {
				return w.outside(program.Value{Shape: v.Shape, DType: v.DType, Weight: x.Name})
			})
		}
	}
}

// inEightBits rounds a weight to whole multiples of a step, 127 of which are its largest number, or that of each line of its
// last axis, or of all axes but the first.
func (s *site) inEightBits(id program.ID) {
	v := s.Values[id]
	n, sizes := size(v.Shape), map[int]bool{}
	for _, each := range []int{n, v.Shape[len(v.Shape)-1], n / max(v.Shape[0], 1)} {
		if each < 2 || n > mostGrid || sizes[each] {
			continue
		}
		sizes[each] = true
		s.outside(id, "rounding", 6, text("8 bits, a step for each %d numbers: %s", each, s.name(id)), func(w *writer, x program.ID) program.ID {
			return w.numbers(v.DType, v.Shape, func() []float64 {
				var out []float64
				for line := range slices.Chunk(s.base.Value(id).Floats(), each) {
					step := cmp.Or(vec.MaxAbs(line), 1) / 127 // zeros stay
					out = append(out, vec.Map(line, func(x float64) float64 { return math.RoundToEven(x/step) * step })...)
				}
				return out
			})
		})
	}
}

// isMask reports whether a value has nothing but zero and one.
func (s *site) isMask(id program.ID) bool {
	x := s.base.Value(id)
	return x != nil && x.Len() > 1 && !slices.ContainsFunc(x.Floats(), func(v float64) bool { return v != 0 && v != 1 })
}

// masks makes a result of bools another one.
func masks(s *site) {
	if !s.single || s.result.DType != tensor.Bool {
		return
	}
	s.then("mask", 1, "mask inverted", by("bitwise_not"))
	s.then("mask", 1, "mask true everywhere", filled(1))
	s.then("mask", 1, "mask false everywhere", filled(0))
	shape := s.result.Shape
	n := len(shape)
	if n < 2 || shape[n-1] < 2 || shape[n-2] < 2 {
		return
	}
	for _, k := range []int{0, -1, 1} {
		s.then("mask", 2, text("mask → lower triangle at %d", k), func(w *writer, id program.ID) program.ID {
			return w.call("tril", filled(1)(w, id), nil, "diagonal", k)
		})
	}
	for width := 1; width < min(shape[n-1], mostWindow); width++ {
		s.then("mask", 4, text("mask and a window of %d", width), by("triu", "diagonal", shape[n-1]-shape[n-2]+1-width))
	}
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

// changes lists what may be done to a value.
func (s *site) changes(id program.ID, add func(kind string, cost int, what string, f change)) {
	v := s.Values[id]
	if len(v.Shape) <= mostAxes {
		s.layouts(v, func(what string, f change) { add("layout", 5, what+" of", f) })
	}
	if isComplex(v) {
		add("value", 4, "the conjugate of", by("_conj"))
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
		add("rounding", 6, d.String()+":", rounded(d))
	}
}

// values do something to every element.
var values = []struct {
	what     string
	constant bool // all elements are one number then
	ofLines  bool // it hangs on the others of the last axis
	do       change
}{
	{"0 times", true, false, times(0)}, {"-1 times", false, false, times(-1)},
	{"2 times", false, false, times(2)}, {"0.5 times", false, false, times(0.5)},
	{"1 +", false, false, by("add", "other", 1)}, {"the square of", false, false, square},
	{"1 in place of", true, false, func(w *writer, x program.ID) program.ID { return w.two("add", w.two("mul", x, 0.0), 1) }},
	{"without its mean,", false, true, byLine("sub", "mean")},
	{"divided by its sum,", false, true, byLine("div", "sum")},
	{"divided by its norm,", false, true, byLine("div", "linalg_vector_norm")},
	{"the softmax of", false, true, shares},
}

func times(c float64) change { return by("mul", "other", c) }

func square(w *writer, x program.ID) program.ID { return w.two("mul", x, x) }

// byLine does something to each number by what is made of its line.
func byLine(op, of string) change {
	return func(w *writer, x program.ID) program.ID { return w.two(op, x, w.along(of, x, -1)) }
}

// filled is a value that is one number everywhere.
func filled(all int) change {
	return func(w *writer, id program.ID) program.ID {
		return w.like("full", id, nil, "size", w.shape(id), "fill_value", all)
	}
}

// layouts put the elements of a value in another order.
func (s *site) layouts(v program.Value, add func(what string, f change)) {
	for d, n := range v.Shape {
		if n < 2 || n > mostWidth {
			continue
		}
		shifts := []int{1, -1}
		for _, q := range []int{2, 3} {
			if n%q == 0 && n > q {
				shifts = append(shifts, n/q, -n/q)
			}
		}
		for _, k := range shifts {
			add(text("axis %d rolled by %d", d, k), by("roll", "shifts", []int{k}, "dims", []int{d}))
		}
		for _, k := range []int{1, -1} {
			add(text("axis %d shifted by %d", d, k), func(w *writer, id program.ID) program.ID { return w.beyond(id, d, [2]int{k, -k}, nil) })
		}
		add(text("axis %d flipped", d), by("flip", "dims", []int{d}))
		if d == 2 && len(v.Shape) == 4 {
			add("axis 2 flipped, and axis 3,", by("flip", "dims", []int{2, 3}))
		}
		s.factored(d, n, add)
		if d > 0 && v.Shape[d-1] > 1 && v.Shape[d-1] != n {
			add(text("axes %d and %d exchanged, and read in the old shape,", d-1, d), func(w *writer, id program.ID) program.ID {
				return w.view(w.transpose(id, d-1, d), w.shape(id)...)
			})
		}
		for e := range d {
			if v.Shape[e] == n {
				add(text("axes %d and %d exchanged", e, d), func(w *writer, id program.ID) program.ID { return w.transpose(id, e, d) })
			}
		}
	}
}

// factored reads an axis of n as several, and writes it with these in another order.
func (s *site) factored(d, n int, add func(what string, f change)) {
	factors := s.factors(n)
	for _, a := range factors {
		add(text("axis %d as %d×%d → %d×%d", d, a, n/a, n/a, a), func(w *writer, id program.ID) program.ID { return w.turn(id, d, a, 0) })
	}
	if a := int(math.Sqrt(float64(n - 1))); a > 1 && a*a == n-1 { // a grid after a token of its own
		add(text("axis %d but for its first as %d×%d, transposed", d, a, a), func(w *writer, id program.ID) program.ID {
			order := make([]int, n)
			for i := range a * a {
				order[1+i] = 1 + i%a*a + i/a
			}
			return w.selected(id, d, order)
		})
	}
	for _, a := range factors { // two outer ones, of which one is small
		for _, b := range []int{2, 3} {
			c := n / a / b
			if n/a%b > 0 || c < 2 || a == b {
				continue
			}
			for _, q := range [][2]int{{a, b}, {b, a}} {
				add(text("axis %d as %d×%d×%d → %d×%d×%d", d, q[0], q[1], c, q[1], q[0], c),
					func(w *writer, id program.ID) program.ID { return w.turn(id, d, q[0], q[1]) })
			}
		}
	}
}

// factors are those of n that an axis of n may be made of.
func (s *site) factors(n int) (out []int) {
	for _, a := range slices.Concat([]int{2, 3, 4, n / 2}, s.sizes) {
		if a > 1 && a < n && n%a == 0 && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// spread gives each element of an operand that is spread over an axis to others: by turns, not one after the other, as a
// tiled tensor for a repeated one.
func spread(s *site) {
	if !s.single || !isOne(s.op, spreading+" expand") || !isFloat(s.result) {
		return
	}
	to := s.result.Shape
	for _, x := range s.operands {
		shape := s.shape(x.id)
		for d := 1; d < len(shape) && len(shape) == len(to); d++ {
			if shape[d] != 1 || to[d] == 1 || shape[d-1] == 1 || shape[d-1] != to[d-1] {
				continue
			}
			give := func(what string, f func(w *writer, x program.ID, out []int) program.ID) {
				s.add("layout", 4, text("%s of %s%s", x.name, s.op.Name, what), func(w *writer, o program.Op) {
					id, out := tensorOf(o, x.name), s.shape(o.Out[0])
					w.needs(len(w.shape(id)) == len(out))
					w.give(o, x.name, f(w, id, out))
				})
			}
			give(text(" spread by turns over axis %d", d), func(w *writer, x program.ID, out []int) program.ID {
				return w.view(w.transpose(w.expand(x, out), d-1, d), out...)
			})
			give(text(": the first of axis %d everywhere", d-1), func(w *writer, x program.ID, _ []int) program.ID {
				return w.expand(w.slice(x, d-1, 0, 1), w.shape(x))
			})
		}
	}
}

// refactored splits an axis into the same parts in the other order, or joins two that stand in the other order.
func refactored(s *site) {
	if !s.single || self(s.op) == program.None || s.op.Name != "view" || !isFloat(s.result) {
		return
	}
	from, to := s.shape(self(s.op)), s.result.Shape
	long, short := to, from
	if len(from) > len(to) {
		long, short = from, to
	}
	d := 0
	for d < len(short) && d < len(long) && long[d] == short[d] {
		d++
	}
	more := len(long) - len(short)
	if more < 1 || d == len(short) || size(long[d:d+more+1]) != short[d] {
		return
	}
	for k := d; k < d+more; k++ { // two neighbours of the parts
		a, b := long[k], long[k+1]
		if a == 1 || b == 1 {
			continue
		}
		s.add("layout", 4, text("view of %d×%d as %d×%d", a, b, b, a), func(w *writer, o program.Op) {
			x := self(o)
			w.needs(len(w.shape(x)) == len(from))
			if len(to) < len(from) {
				w.give(o, "self", w.transpose(x, k, k+1))
				return
			}
			other := slices.Clone(w.s.shape(o.Out[0]))
			other[k], other[k+1] = other[k+1], other[k]
			w.pass(o, w.transpose(w.view(x, other...), k, k+1))
		})
	}
}
