package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// axes makes an operator work along others.
func axes(s *site) {
	o := s.first()
	_, ids := tensors(o)
	if len(ids) == 0 {
		return
	}
	rank := len(s.shape(ids[0]))
	for _, a := range o.Args {
		if a.Name != "dim" && a.Name != "dim0" && a.Name != "dim1" {
			continue
		}
		set := func(v any) {
			s.add("axis", 2, text("%s of %s: %v → %v", a.Name, o.Name, a.Value, v), func(w *writer, o program.Op) {
				over, list := v.([]int)
				if keeps, _ := o.Args.Get("keepdim").(bool); !list || !keeps || len(o.Out) != 1 {
					w.give(o, a.Name, v)
					return
				}
				shape := slices.Clone(s.shape(ids[0]))
				for _, d := range over {
					shape[d] = 1
				}
				w.pass(o, w.made(o, program.Value{Shape: shape, DType: s.Values[o.Out[0]].DType}, with(o.Args, a.Name, v)))
			})
		}
		for d := range rank {
			if _, list := a.Value.([]int); list {
				set([]int{d})
				for e := range d {
					set([]int{e, d})
				}
			} else if v, ok := a.Value.(int); ok && d != v && d != v+rank {
				set(d)
			}
		}
	}
}

// parts takes others of a tensor: of a slice, a selection, a split.
func parts(s *site) {
	o := s.first()
	_, ids := tensors(o)
	if len(ids) == 0 {
		return
	}
	whole := s.shape(ids[0])
	d, _ := o.Args.Get("dim").(int)
	if d < 0 {
		d += len(whole)
	}
	if d < 0 || d >= len(whole) {
		return
	}
	switch o.Name {
	case "slice":
		s.slices(o, d, whole[d])
	case "select":
		index, _ := o.Args.Get("index").(int)
		for _, i := range []int{0, 1, 2, 3, index - 1, index + 1, whole[d] - 1} {
			if i != index && i >= 0 && i < whole[d] && i != index+whole[d] {
				s.given("slice", 2, text("index %d → %d", index, i), "index", i)
			}
		}
	case "split", "split_with_sizes", "unbind":
		if len(o.Out) < 2 || slices.Contains(o.Out, program.None) {
			return
		}
		for _, p := range orders(len(o.Out)) {
			s.add("slice", 2, text("parts in the order %v", p), func(w *writer, o program.Op) { w.reordered(o, d, p) })
		}
		if whole[d]%len(o.Out) == 0 && o.Name != "unbind" {
			s.add("slice", 2, "parts one after the other → interleaved", func(w *writer, o program.Op) {
				for i, id := range o.Out {
					w.slice(o, d, i, whole[d], len(o.Out), id)
				}
			})
		}
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

// slices takes as much from elsewhere along an axis of n.
func (s *site) slices(o program.Op, d, n int) {
	v, _ := s.result(o)
	if d >= len(v.Shape) || v.Shape[d] == 0 {
		return
	}
	length, from := v.Shape[d], 0
	s.wraps(o, d, n, length)
	if f, ok := o.Args.Get("start").(int); ok && f >= 0 {
		from = f
	}
	take := func(what string, from, to, step int) {
		if from >= 0 && to <= n {
			s.add("slice", 2, what, func(w *writer, o program.Op) {
				w.run(o, o.Name, with(with(with(o.Args, "start", from), "end", to), "step", step))
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
			take(text("from %d → from %d", from, at), at, at+length, 1)
		}
	}
	if n%length != 0 || n == length {
		return
	}
	q := n / length
	for at := range q {
		take(text("from %d → every %dth from %d", from, q, at), at, n, q)
	}
}

// wraps adds what is cut off after a convolution by Fourier transforms to its beginning: nothing was padded for it.
func (s *site) wraps(o program.Op, d, n, length int) {
	x, _ := o.Args.Get("self").(program.ID)
	if m := s.Maker(x); m < 0 || s.Ops[m].Name != "_fft_c2r" || n == length {
		return
	}
	s.add("slice", 2, "the convolution wraps around", func(w *writer, o program.Op) {
		part := func(at int) program.ID {
			shape := slices.Clone(w.value(x).Shape)
			shape[d] = min(length, n-at)
			id := w.call("slice", x, shape, "self", x, "dim", d, "start", at, "end", at+shape[d], "step", 1)
			return w.beyond(id, d, [2]int{0, length - shape[d]}, nil)
		}
		sum := part(0)
		for at := length; at+length < n; at += length {
			sum = w.call("add", sum, nil, "self", sum, "other", part(at), "alpha", 1)
		}
		w.run(o, "add", argsOf([]any{"self", sum, "other", part((n - 1) / length * length), "alpha", 1}))
	})
}

// slice writes an operator that takes a part of what another one takes.
func (w *writer) slice(o program.Op, d, start, end, step int, out program.ID) {
	w.ops = append(w.ops, program.Op{Name: "slice", Full: full("slice"), Stack: o.Stack, Layer: o.Layer, Out: []program.ID{out},
		Args: argsOf([]any{"self", o.Args.Get("self"), "dim", d, "start", start, "end", end, "step", step})})
}

// reordered cuts a tensor into the same parts, which stand there in another order.
func (w *writer) reordered(o program.Op, d int, order []int) {
	if len(o.Out) != len(order) {
		w.failed = true
		return
	}
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
		n := w.s.Values[o.Out[k]].Shape[d]
		w.slice(o, d, at, at+n, 1, o.Out[k])
		at += n
	}
}
