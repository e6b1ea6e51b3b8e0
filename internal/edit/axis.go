package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// axes makes an operator work along others.
func axes(s *site) {
	if len(s.operands) == 0 {
		return
	}
	x := s.operands[0].id
	rank := len(s.shape(x))
	for _, a := range s.op.Args {
		if !slices.Contains([]string{"dim", "dim0", "dim1"}, a.Name) {
			continue
		}
		set := func(v any) {
			what := text("%s of %s: %v → %v", a.Name, s.op.Name, a.Value, v)
			over, list := v.([]int)
			if !list || !keepsAxes(s.op) {
				s.given("axis", 2, what, a.Name, v)
				return
			}
			s.reduced(2, what, s.group, over)
			if all := s.reductions(); len(all) > len(s.group) && all[0] == s.group[0] {
				s.reduced(3, what+", and of all that go along them", all, over)
			}
		}
		for d := range rank {
			switch v := a.Value.(type) {
			case int:
				if d != v && d != v+rank {
					set(d)
				}
			case []int:
				set([]int{d})
				for e := range d {
					set([]int{e, d})
				}
			}
		}
	}
}

// keepsAxes reports whether an operator makes one number of each line along some axes, which stay.
func keepsAxes(o program.Op) bool {
	keeps, _ := o.Args.Get("keepdim").(bool)
	return keeps && self(o) != program.None
}

// reductions are such operators along the same axes of a tensor of the same shape.
func (s *site) reductions() (at []int) {
	axes, _ := s.op.Args.Get("dim").([]int)
	for i, o := range s.Ops {
		if over, list := o.Args.Get("dim").([]int); list && keepsAxes(o) && slices.Equal(over, axes) && slices.Equal(s.shape(self(o)), s.shape(self(s.op))) {
			at = append(at, i)
		}
	}
	return at
}

// reduced lets some operators go along other axes. What is made of their results alone has their new shape, too, up to the
// operators that spread it over what has another one.
func (s *site) reduced(cost int, what string, at, over []int) {
	was, shape := s.result.Shape, slices.Clone(s.shape(self(s.op)))
	for _, d := range over {
		shape[d] = 1
	}
	inside, ends := map[int]bool{}, []int(nil)
	for i, o := range s.Ops {
		v, single := s.resultOf(o)
		switch {
		case slices.Contains(at, i):
			inside[i] = true
		case !slices.ContainsFunc(s.Operands(i), func(id program.ID) bool { return inside[s.Maker(id)] }):
		case single && slices.Equal(v.Shape, was):
			inside[i] = true
		default:
			ends = append(ends, i)
		}
	}
	if len(ends) == 0 {
		return
	}
	s.write(Edit{Kind: "axis", Cost: cost, Text: what, At: at}, ends, func(w *writer, o program.Op) {
		now := map[program.ID]program.ID{}
		var remake func(o program.Op)
		remake = func(o program.Op) {
			for _, id := range o.Operands() {
				if _, done := now[id]; inside[s.Maker(id)] && !done {
					i := s.Maker(id)
					made := s.Ops[i]
					remake(made)
					if slices.Contains(at, i) {
						made.Args = with(made.Args, "dim", over)
					}
					w.again(made, now, func(int, program.ID) []int { return slices.Clone(shape) })
				}
			}
		}
		remake(o)
		w.run(o, o.Name, renamed(o.Args, now))
	})
}

// parts takes others of a tensor: of a slice, a selection, a split.
func parts(s *site) {
	if len(s.operands) == 0 || len(s.shape(s.operands[0].id)) == 0 {
		return
	}
	shape := s.shape(s.operands[0].id)
	d := axis(s.op, len(shape))
	n := shape[d]
	switch s.op.Name {
	case "slice":
		s.slices(d, n)
		s.cut(d, n)
	case "select":
		index := intOf(s.op, "index")
		for _, i := range []int{0, 1, 2, 3, index - 1, index + 1, n - 1} {
			if i != index && i >= 0 && i < n && i != index+n {
				s.given("slice", 2, text("index %d → %d", index, i), "index", i)
			}
		}
	case "split", "split_with_sizes", "unbind":
		out := s.op.Out
		if len(out) < 2 || slices.Contains(out, program.None) {
			return
		}
		for _, p := range orders(len(out)) {
			s.add("slice", 2, text("parts in the order %v", p), func(w *writer, o program.Op) { w.reordered(o, d, p) })
		}
		if n%len(out) == 0 && s.op.Name != "unbind" {
			s.add("slice", 2, "parts one after the other → interleaved", func(w *writer, o program.Op) {
				for i, id := range o.Out {
					w.part(o, d, i, n, len(o.Out), id)
				}
			})
		}
	case "glu":
		s.add("slice", 2, "halves of glu exchanged", func(w *writer, o program.Op) {
			x := self(o)
			w.give(o, "self", w.cat(d, w.slice(x, d, n/2, n/2), w.slice(x, d, 0, n/2)))
		})
	}
}

// slices takes as much from elsewhere along an axis of n.
func (s *site) slices(d, n int) {
	if d >= len(s.result.Shape) || s.result.Shape[d] == 0 {
		return
	}
	length := s.result.Shape[d]
	s.wraps(d, n, length)
	from := max(intOf(s.op, "start"), 0)
	take := func(what string, at, to, step int) {
		if at >= 0 && to <= n {
			s.add("slice", 2, text("from %d → %s %d", from, what, at), func(w *writer, o program.Op) {
				w.run(o, o.Name, with(o.Args, "start", at, "end", to, "step", step))
			})
		}
	}
	starts := []int{0, n - length, from + 1, from - 1, from + 2, from - 2}
	for at := 0; at < n; at += length {
		starts = append(starts, at)
	}
	slices.Sort(starts)
	for _, at := range slices.Compact(starts) {
		if at != from {
			take("from", at, at+length, 1)
		}
	}
	if q := n / length; n%length == 0 && q > 1 {
		for at := range q {
			take(text("every %dth from", q), at, n, q)
		}
	}
}

// wraps adds what is cut off after a convolution by Fourier transforms to its beginning: nothing was padded for it.
func (s *site) wraps(d, n, length int) {
	if s.made(self(s.op)).Name != "_fft_c2r" || n == length {
		return
	}
	s.add("slice", 2, "the convolution wraps around", func(w *writer, o program.Op) {
		part := func(at int) program.ID {
			some := min(length, n-at)
			return w.beyond(w.slice(self(o), d, at, some), d, [2]int{0, length - some}, nil)
		}
		sum := part(0)
		for at := length; at < n; at += length {
			sum = w.two("add", sum, part(at))
		}
		w.pass(o, sum)
	})
}

// cut exchanges parts one after the other and interleaved ones, where slices along an axis leave nothing of a value: a gate
// and what it gates may lie otherwise in what both are cut from.
func (s *site) cut(d, n int) {
	at := slices.DeleteFunc(s.takers(self(s.op)), func(i int) bool {
		return s.Ops[i].Name != "slice" || s.Ops[i].Args.Get("dim") != s.op.Args.Get("dim")
	})
	q := len(at)
	if q < 2 || q > mostParts || at[0] != s.group[0] || n%q != 0 {
		return
	}
	each, strided, joined := n/q, true, true
	for k, i := range at {
		start, step := intOf(s.Ops[i], "start"), intOf(s.Ops[i], "step")
		v, _ := s.resultOf(s.Ops[i])
		strided = strided && start == k && step == q
		joined = joined && start == k*each && step == 1 && v.Shape[d] == each
	}
	rewrite := func(what string, from, size, step int) {
		s.addAt("slice", 2, what, at, func(w *writer, o program.Op) {
			k := slices.IndexFunc(at, func(i int) bool { return s.Ops[i].Out[0] == o.Out[0] })
			w.part(o, d, k*from, min(k*from+size, n), step, o.Out[0])
		})
	}
	if strided {
		rewrite("parts interleaved → one after the other", each, each, 1)
	}
	if joined {
		rewrite("parts one after the other → interleaved", 1, n, q)
	}
}

// part writes an operator that takes a part of what another one takes.
func (w *writer) part(o program.Op, d, start, end, step int, out program.ID) {
	w.write("slice", []program.ID{out}, "self", self(o), "dim", d, "start", start, "end", end, "step", step)
}

// reordered cuts a tensor into the same parts, which stand there in another order.
func (w *writer) reordered(o program.Op, d int, order []int) {
	w.needs(len(o.Out) == len(order))
	if o.Name == "unbind" {
		out := slices.Clone(o.Out)
		for i, k := range order {
			out[k] = o.Out[i]
		}
		o.Out = out
		w.ops = append(w.ops, o)
		return
	}
	at := 0
	for _, k := range order {
		n := w.s.shape(o.Out[k])[d]
		w.part(o, d, at, at+n, 1, o.Out[k])
		at += n
	}
}

// orders are all orders of a few parts, and of many those in which two are exchanged.
func orders(n int) (out [][]int) {
	if n <= mostParts {
		return permutations(n)
	}
	for i := range min(n, mostPairs) {
		for k := range i {
			order := upTo(n)
			order[i], order[k] = k, i
			out = append(out, order)
		}
	}
	return out
}

// permutations are all orders of n but the usual one.
func permutations(n int) (out [][]int) {
	var next func(order []int)
	next = func(order []int) {
		if len(order) == n && !slices.IsSorted(order) {
			out = append(out, order)
		}
		for i := range n {
			if !slices.Contains(order, i) {
				next(append(slices.Clone(order), i))
			}
		}
	}
	next(nil)
	return out
}
