package edit

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
)

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
			add(text("axis %d rolled by %d", d, k), func(w *writer, id program.ID) program.ID {
				return w.call("roll", id, nil, "self", id, "shifts", []int{k}, "dims", []int{d})
			})
		}
		for _, k := range []int{1, -1} {
			add(text("axis %d shifted by %d", d, k), func(w *writer, id program.ID) program.ID {
				pad := make([]int, max(2*(len(w.value(id).Shape)-d), 2))
				pad[len(pad)-2], pad[len(pad)-1] = k, -k
				return w.call("constant_pad_nd", id, nil, "self", id, "pad", pad, "value", 0)
			})
		}
		add(text("axis %d flipped", d), func(w *writer, id program.ID) program.ID {
			return w.call("flip", id, nil, "self", id, "dims", []int{d})
		})
		for _, a := range s.factors(n) {
			add(text("axis %d as %d×%d → %d×%d", d, a, n/a, n/a, a), func(w *writer, id program.ID) program.ID { return w.turn(id, d, a) })
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
		for _, q := range s.triples(n) {
			add(text("axis %d as %d×%d×%d → %d×%d×%d", d, q[0], q[1], n/q[0]/q[1], q[1], q[0], n/q[0]/q[1]), func(w *writer, id program.ID) program.ID { return w.turnOuter(id, d, q[0], q[1]) })
		}
		if d > 0 && v.Shape[d-1] > 1 && v.Shape[d-1] != n {
			add(text("axes %d and %d exchanged, and read in the old shape,", d-1, d), func(w *writer, id program.ID) program.ID {
				shape := w.value(id).Shape
				return w.view(w.transpose(id, d-1, d), shape...)
			})
		}
		for e := range d {
			if v.Shape[e] == n {
				add(text("axes %d and %d exchanged", e, d), func(w *writer, id program.ID) program.ID { return w.transpose(id, e, d) })
			}
		}
	}
}

// factors are those of n that an axis of n may be made of.
func (s *site) factors(n int) (out []int) {
	all := append([]int{2, 3, 4, n / 2}, s.sizes...)
	for i, a := range all {
		if a > 1 && a < n && n%a == 0 && slices.Index(all, a) == i {
			out = append(out, a)
		}
	}
	return out
}

// triples are pairs of outer factors of n, of which one is small, with something after them.
func (s *site) triples(n int) (out [][2]int) {
	for _, a := range s.factors(n) {
		for _, b := range []int{2, 3} {
			if n/a%b == 0 && n/a/b > 1 && a != b {
				out = append(out, [2]int{a, b}, [2]int{b, a})
			}
		}
	}
	return out
}

// turnOuter reads an axis of a·b·c as [a, b, c], and writes it as [b, a, c].
func (w *writer) turnOuter(id program.ID, d, a, b int) program.ID {
	shape := w.value(id).Shape
	if w.failed = w.failed || d >= len(shape) || shape[d]%(a*b) != 0; w.failed {
		return id
	}
	split := slices.Concat(shape[:d], []int{a, b, shape[d] / a / b}, shape[d+1:])
	return w.view(w.transpose(w.view(id, split...), d, d+1), shape...)
}

// spread gives each element of an operand that is spread over an axis to others: by turns, not one after the other, as a
// tiled tensor for a repeated one.
func spread(s *site) {
	o := s.first()
	v, ok := s.result(o)
	if !ok || !slices.Contains(spreads, o.Name) && o.Name != "expand" || !isFloat(v) {
		return
	}
	names, ids := tensors(o)
	for i, id := range ids {
		shape := s.shape(id)
		for d := 1; d < len(shape) && len(shape) == len(v.Shape); d++ {
			if shape[d] != 1 || v.Shape[d] == 1 || shape[d-1] == 1 || shape[d-1] != v.Shape[d-1] {
				continue
			}
			s.add("layout", 4, text("%s of %s spread by turns over axis %d", names[i], o.Name, d), func(w *writer, o program.Op) {
				x, out := o.Args.Get(names[i]).(program.ID), w.s.Values[o.Out[0]].Shape
				if w.failed = w.failed || len(w.value(x).Shape) != len(out); w.failed {
					return
				}
				x = w.call("expand", x, out, "self", x, "size", out)
				x = w.transpose(x, d-1, d)
				x = w.view(x, out...)
				if o.Name == "expand" {
					w.run(o, "view", argsOf([]any{"self", x}))
					return
				}
				w.give(o, names[i], x)
			})
			s.add("layout", 4, text("%s of %s: the first of axis %d everywhere", names[i], o.Name, d-1), func(w *writer, o program.Op) {
				x := o.Args.Get(names[i]).(program.ID)
				all := w.value(x).Shape
				if w.failed = w.failed || len(all) <= d; w.failed {
					return
				}
				one := slices.Clone(all)
				one[d-1] = 1
				x = w.call("slice", x, one, "self", x, "dim", d-1, "start", 0, "end", 1, "step", 1)
				w.give(o, names[i], w.call("expand", x, all, "self", x, "size", all))
			})
		}
	}
}

// refactored splits an axis into the same parts in the other order, or joins two that stand in the other order.
func refactored(s *site) {
	o := s.first()
	v, ok := s.result(o)
	x, is := o.Args.Get("self").(program.ID)
	if !ok || !is || o.Name != "view" || !isFloat(v) {
		return
	}
	from, to := s.shape(x), v.Shape
	long, short, splits := to, from, true
	if len(from) > len(to) {
		long, short, splits = from, to, false
	}
	if len(long) != len(short)+1 {
		return
	}
	d := 0
	for d < len(short) && long[d] == short[d] {
		d++
	}
	if d == len(short) || d+1 >= len(long) || long[d]*long[d+1] != short[d] || long[d] == 1 || long[d+1] == 1 {
		return
	}
	a, b := long[d], long[d+1]
	s.add("layout", 4, text("view of %d×%d as %d×%d", a, b, b, a), func(w *writer, o program.Op) {
		x := o.Args.Get("self").(program.ID)
		if w.failed = w.failed || len(w.value(x).Shape) != len(from); w.failed {
			return
		}
		if splits {
			x = w.turn(x, d, b)
		} else {
			x = w.transpose(x, d, d+1)
		}
		w.run(o, "view", with(o.Args, "self", x))
	})
}

// view writes a value in another shape.
func (w *writer) view(id program.ID, shape ...int) program.ID {
	return w.call("view", id, shape, "self", id, "size", shape)
}

// turn reads an axis of a·b as [a, b], and writes it as [b, a].
func (w *writer) turn(id program.ID, d, a int) program.ID {
	shape := w.value(id).Shape
	if w.failed = w.failed || d >= len(shape) || shape[d]%a != 0; w.failed {
		return id
	}
	b := shape[d] / a
	split := slices.Concat(shape[:d], []int{a, b}, shape[d+1:])
	return w.view(w.transpose(w.view(id, split...), d, d+1), shape...)
}

// border lists what operators take from elsewhere, and what others take of them.
func (s *site) border(at []int) (in, out []program.ID) {
	inside := func(i int) bool { return slices.Contains(at, i) }
	take := func(id program.ID, within bool) {
		switch m := s.Maker(id); {
		case within && !inside(m) && !slices.Contains(in, id):
			in = append(in, id)
		case !within && inside(m) && !slices.Contains(out, id):
			out = append(out, id)
		}
	}
	for i := range s.Ops {
		for _, id := range s.Ops[i].Operands() {
			take(id, inside(i))
		}
	}
	take(s.Out, false)
	return in, out
}
