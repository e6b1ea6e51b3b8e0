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
		rows, shape := [3]program.ID{}, [2]int{}
		all := true
		for i, in := range []input{a.q, a.k, a.v} {
			from, is, ok := s.headed(s.at(in))
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
	for o := s.made(id); isOne(o, moving) && self(o) != program.None; o = s.made(id) {
		from, to := s.shape(self(o)), s.shape(o.Out[0])
		id = self(o)
		if o.Name == "view" && len(from) == 3 && len(to) == 4 && slices.Equal(from[:2], to[:2]) && to[2]*to[3] == from[2] {
			return id, [2]int{to[2], to[3]}, true
		}
	}
	return rows, heads, false
}

// joined is the operator that makes rows of heads again; −1 where something else is done to them.
func (s *site) joined(id program.ID, heads [2]int) int {
	for t := s.takers(id); len(t) == 1 && isOne(s.Ops[t[0]], moving); t = s.takers(id) {
		from, to := s.shape(id), s.shape(s.Ops[t[0]].Out[0])
		if s.Ops[t[0]].Name == "view" && len(from) == 4 && len(to) == 3 && from[2] == heads[0] && from[3] == heads[1] {
			return t[0]
		}
		id = s.Ops[t[0]].Out[0]
	}
	return -1
}

// plain returns by what the scores of an attention are multiplied, and the mask that is added to them, the same for all
// heads; ok is false where something else is done to them.
func (s *site) plain(a attention) (scale float64, masked program.ID, ok bool) {
	if a.softmax < 0 {
		q := s.shape(s.at(a.q))
		scale = 1 / math.Sqrt(float64(q[len(q)-1]))
		if given, is := toFloat(s.Ops[a.k.op].Args.Get("scale")); is {
			scale = given
		}
		return scale, program.None, s.ofAll(s.at(a.mask))
	}
	scale, masked = 1, program.None
	for _, i := range a.ops {
		o := s.Ops[i]
		by, number := toFloat(o.Args.Get("other"))
		switch {
		case isOne(o, products+" "+moving), i == a.softmax:
		case o.Name == "mul" && number:
			scale *= by
		case o.Name == "div" && number:
			scale /= by
		case o.Name == "add" && !number && masked == program.None && s.ofAll(operand(o, "other")):
			masked = operand(o, "other")
		default:
			return scale, masked, false
		}
	}
	return scale, masked, true
}

// ofAll reports whether a mask, if there is one, is the same for all heads.
func (s *site) ofAll(id program.ID) bool {
	return id == program.None || len(s.shape(id)) < 3 || len(s.shape(id)) == 4 && s.shape(id)[1] == 1
}

// attends writes an attention of n heads of a width, in the place of the operator that joins heads.
func (w *writer) attends(o program.Op, a attention, rows [3]program.ID, n, width int, scale float64, masked program.ID) {
	b := w.s.shape(o.Out[0])[0]
	split := func(id program.ID) program.ID { return w.transpose(w.view(id, b, w.shape(id)[1], n, width), 1, 2) }
	q, k, v := split(rows[0]), split(rows[1]), split(rows[2])
	from, to := w.shape(q)[2], w.shape(k)[2]
	if fused := w.s.Ops[a.k.op]; a.softmax < 0 {
		x := w.made(fused, *w.value(q), with(fused.Args, "query", q, "key", k, "value", v, "scale", scale))
		w.pass(o, w.transpose(x, 1, 2))
		return
	}
	product := func(x, y program.ID, rows, depth, columns int) program.ID {
		x = w.call("bmm", x, []int{b * n, rows, columns}, "self", w.view(x, b*n, rows, depth), "mat2", w.view(y, b*n, depth, columns))
		return w.view(x, b, n, rows, columns)
	}
	x := w.two("mul", product(q, w.transpose(k, -2, -1), from, width, to), scale)
	if masked != program.None {
		x = w.two("add", x, masked)
	}
	w.pass(o, w.transpose(product(w.softmax(x), v, from, to, width), 1, 2))
}
