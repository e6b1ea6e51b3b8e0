package edit

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// heads are attentions of more heads that are smaller, or of fewer that are larger: what stands between the views that
// make heads of rows and the one that makes rows of them again is written anew.
func heads(s *site) {
	for _, a := range s.attentions() {
		v := s.at(a.v)
		q, ok := s.Ops[a.k.op].Args.Get("query").(program.ID)
		if !ok {
			_, ids := tensors(s.Ops[a.k.op])
			q = ids[0]
		}
		rows, shape := [3]program.ID{}, [2]int{}
		all := true
		for i, id := range []program.ID{q, s.at(a.k), v} {
			from, is, ok := s.headed(id)
			all = all && ok && (i == 0 || is == shape)
			rows[i], shape = from, is
		}
		join := s.joined(s.Ops[a.v.op].Out[0], shape)
		scale, masked, plain := s.plain(a)
		if !all || join < 0 || !plain {
			continue
		}
		width := shape[0] * shape[1]
		for _, n := range []int{2 * shape[0], shape[0] / 2, 4 * shape[0], shape[0] / 4, shape[1], 1} {
			if n < 1 || n == shape[0] || width%n != 0 {
				continue
			}
			for _, by := range []float64{scale, scale * math.Sqrt(float64(shape[1])/float64(width/n))} {
				what := text("%d heads of %d → %d of %d, scaled by %.4g", shape[0], shape[1], n, width/n, by)
				s.addAt("layout", 3, what, []int{join}, func(w *writer, o program.Op) { w.attends(o, a, rows, n, width/n, by, masked) }).ID = "attention/heads"
			}
		}
	}
}

// headed returns the rows of which a view makes heads, and how many of which width, where a value is those heads in
// another order of axes.
func (s *site) headed(id program.ID) (rows program.ID, heads [2]int, ok bool) {
	for i := s.Maker(id); i >= 0 && slices.Contains(moves, s.Ops[i].Name); i = s.Maker(id) {
		in, is := s.Ops[i].Args.Get("self").(program.ID)
		if !is {
			return rows, heads, false
		}
		from, to := s.shape(in), s.shape(s.Ops[i].Out[0])
		if s.Ops[i].Name == "view" && len(from) == 3 && len(to) == 4 && slices.Equal(from[:2], to[:2]) && to[2]*to[3] == from[2] {
			return in, [2]int{to[2], to[3]}, true
		}
		id = in
	}
	return rows, heads, false
}

// joined is the operator that makes rows of heads again; −1 where something else is done to them.
func (s *site) joined(id program.ID, heads [2]int) int {
	for {
		t := s.takers(id)
		if len(t) != 1 || !slices.Contains(moves, s.Ops[t[0]].Name) {
			return -1
		}
		from, to := s.shape(id), s.shape(s.Ops[t[0]].Out[0])
		if s.Ops[t[0]].Name == "view" && len(from) == 4 && len(to) == 3 && from[2] == heads[0] && from[3] == heads[1] {
			return t[0]
		}
		id = s.Ops[t[0]].Out[0]
	}
}

// plain returns by what the scores of an attention are multiplied, and the mask that is added to them, the same for all
// heads; ok is false where something else is done to them.
func (s *site) plain(a attention) (scale float64, masked program.ID, ok bool) {
	if a.softmax < 0 {
		o := s.Ops[a.k.op]
		q, _ := o.Args.Get("query").(program.ID)
		shape := s.shape(q)
		scale = 1 / math.Sqrt(float64(shape[len(shape)-1]))
		if given, is := toFloat(o.Args.Get("scale")); is {
			scale = given
		}
		mask, is := o.Args.Get("attn_mask").(program.ID)
		return scale, program.None, !is || mask == program.None || s.ofAll(mask)
	}
	scale, masked = 1, program.None
	for _, i := range a.ops {
		o := s.Ops[i]
		by, number := toFloat(o.Args.Get("other"))
		added, _ := o.Args.Get("other").(program.ID)
		switch {
		case slices.Contains(products, o.Name), slices.Contains(moves, o.Name), i == a.softmax:
		case o.Name == "mul" && number:
			scale *= by
		case o.Name == "div" && number:
			scale /= by
		case o.Name == "add" && !number && masked == program.None && s.ofAll(added):
			masked = added
		default:
			return scale, masked, false
		}
	}
	return scale, masked, true
}

// ofAll reports whether a mask is the same for all heads.
func (s *site) ofAll(id program.ID) bool {
	shape := s.shape(id)
	return len(shape) < 3 || len(shape) == 4 && shape[1] == 1
}

// attends writes an attention of n heads of a width, in the place of the operator that joins heads.
func (w *writer) attends(o program.Op, a attention, rows [3]program.ID, n, width int, scale float64, masked program.ID) {
	out := w.s.Values[o.Out[0]].Shape
	b := out[0]
	split := func(id program.ID) program.ID {
		return w.transpose(w.view(id, b, w.value(id).Shape[1], n, width), 1, 2)
	}
	q, k, v := split(rows[0]), split(rows[1]), split(rows[2])
	from, to := w.value(q).Shape[2], w.value(k).Shape[2]
	var x program.ID
	if fused := w.s.Ops[a.k.op]; a.softmax < 0 {
		x = w.make([]int{b, n, from, width}, w.value(q).DType)
		fused.Args = with(with(with(with(fused.Args, "query", q), "key", k), "value", v), "scale", scale)
		fused.Out = []program.ID{x}
		w.ops = append(w.ops, fused)
	} else {
		x = w.transpose(k, -2, -1)
		x = w.call("bmm", q, []int{b * n, from, to}, "self", w.view(q, b*n, from, width), "mat2", w.view(x, b*n, width, to))
		x = w.call("mul", x, []int{b, n, from, to}, "self", w.view(x, b, n, from, to), "other", scale)
		if masked != program.None {
			x = w.call("add", x, nil, "self", x, "other", masked, "alpha", 1)
		}
		x = w.call("_softmax", x, nil, "self", x, "dim", -1, "half_to_float", false)
		x = w.call("bmm", x, []int{b * n, from, width}, "self", w.view(x, b*n, from, to), "mat2", w.view(v, b*n, to, width))
		x = w.view(x, b, n, from, width)
	}
	x = w.transpose(x, 1, 2)
	w.run(o, "view", argsOf([]any{"self", x, "size", out}))
}
