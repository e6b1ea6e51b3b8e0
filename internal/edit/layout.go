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
			add(text("axis %d shifted by %d", d, k), func(w *writer, id program.ID) program.ID { return w.beyond(id, d, [2]int{k, -k}, nil) })
		}
		add(text("axis %d flipped", d), func(w *writer, id program.ID) program.ID {
			return w.call("flip", id, nil, "self", id, "dims", []int{d})
		})
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
			if n/a%b > 0 || n/a/b < 2 || a == b {
				continue
			}
			for _, q := range [][2]int{{a, b}, {b, a}} {
				c := n / a / b
				add(text("axis %d as %d×%d×%d → %d×%d×%d", d, q[0], q[1], c, q[1], q[0], c), func(w *writer, id program.ID) program.ID { return w.turn(id, d, q[0], q[1]) })
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

// spread gives each element of an operand that is spread over an axis to others: by turns, not one after the other, as a
// tiled tensor for a repeated one.
func spread(s *site) {
	o := s.first()
	v, ok := s.result(o)
	if !ok || !isOne(o, spreading+" expand") || !isFloat(v) {
		return
	}
	names, ids := tensors(o)
	for i, id := range ids {
		shape := s.shape(id)
		for d := 1; d < len(shape) && len(shape) == len(v.Shape); d++ {
			if shape[d] != 1 || v.Shape[d] == 1 || shape[d-1] == 1 || shape[d-1] != v.Shape[d-1] {
				continue
			}
			give := func(what string, f func(w *writer, x program.ID, out []int) program.ID) {
				s.add("layout", 4, text("%s of %s%s", names[i], o.Name, what), func(w *writer, o program.Op) {
					x, out := operand(o, names[i]), s.shape(o.Out[0])
					if !w.unless(len(w.shape(x)) == len(out)) {
						w.give(o, names[i], f(w, x, out))
					}
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
	o := s.first()
	v, ok := s.result(o)
	if x := self(o); !ok || x == program.None || o.Name != "view" || !isFloat(v) {
		return
	}
	from, to := s.shape(self(o)), v.Shape
	long, short := to, from
	if len(from) > len(to) {
		long, short = from, to
	}
	d := 0
	for d < len(short) && d < len(long) && long[d] == short[d] {
		d++
	}
	if len(long) != len(short)+1 || d == len(short) || long[d]*long[d+1] != short[d] || long[d] == 1 || long[d+1] == 1 {
		return
	}
	a, b := long[d], long[d+1]
	s.add("layout", 4, text("view of %d×%d as %d×%d", a, b, b, a), func(w *writer, o program.Op) {
		x := self(o)
		switch {
		case w.unless(len(w.shape(x)) == len(from)):
		case len(to) > len(from):
			w.give(o, "self", w.turn(x, d, b, 0))
		default:
			w.give(o, "self", w.transpose(x, d, d+1))
		}
	})
}
