package edit

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// input is an operand of an operator.
type input struct {
	op  int
	arg string
}

// at is the value that it is; None for no tensor.
func (s *site) at(in input) program.ID {
	if in.op < 0 {
		return program.None
	}
	return tensorOf(s.Ops[in.op], in.arg)
}

// attention is softmax(q·kᵀ … + mask)·v in a piece, fused or not.
type attention struct {
	q, k, v       input
	kAxis, vAxis  int   // of the keys
	mask          input // op −1 for none
	softmax       int   // −1 where it is fused
	ops           []int // from the product of queries and keys to that of the weights and values
	queries, keys int
}

const products = "bmm mm matmul"

// attentions lists those of a piece.
func (s *site) attentions() (out []attention) {
	for i, o := range s.Ops {
		switch {
		case isOne(o, fused) && tensorOf(o, "key") != program.None:
			k := s.shape(tensorOf(o, "key"))
			n := len(k) - 2
			out = append(out, attention{q: input{i, "query"}, k: input{i, "key"}, v: input{i, "value"}, kAxis: n, vAxis: n, mask: input{i, "attn_mask"},
				softmax: -1, ops: []int{i}, keys: k[n], queries: s.shape(tensorOf(o, "query"))[n]})
		case isOne(o, "_softmax"):
			if a, ok := s.attention(i); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

// attention is the one of a softmax, by the products before and after it.
func (s *site) attention(softmax int) (a attention, ok bool) {
	shares := s.Ops[softmax].Out[0]
	scores, weighs := s.scores(self(s.Ops[softmax]), toScores+2), s.weighs(shares)
	if scores == nil || weighs == nil {
		return a, false
	}
	first, last := scores[len(scores)-1], weighs[len(weighs)-1]
	of, by := tensors(s.Ops[first]), tensors(s.Ops[last])[1]
	k, v := s.shape(of[1].id), s.shape(by.id)
	a = attention{q: input{first, of[0].name}, k: input{first, of[1].name}, v: input{last, by.name}, kAxis: len(k) - 1, vAxis: len(v) - 2,
		mask: input{op: -1}, softmax: softmax, ops: slices.Concat(scores, []int{softmax}, weighs), keys: k[len(k)-1]}
	slices.Sort(a.ops)
	if shape := s.shape(shares); len(shape) > 1 {
		a.queries = shape[len(shape)-2]
	}
	if a.vAxis < 0 || v[a.vAxis] != a.keys {
		return a, false
	}
	for _, i := range scores[:len(scores)-1] {
		for _, x := range tensors(s.Ops[i]) {
			if s.isHiding(x.id, a.keys) {
				a.mask = input{i, x.name}
			}
		}
	}
	return a, true
}

// scores lists the operators that make what a softmax takes, back to the product of queries and keys, which is last; nil
// where there is none.
func (s *site) scores(of program.ID, within int) []int {
	o := s.made(of)
	from := tensors(o)
	switch {
	case within == 0 || o.Name == "":
		return nil
	case isOne(o, products) && len(from) == 2:
		return []int{s.Maker(of)}
	case !isOne(o, elementwise):
		return nil
	}
	for _, x := range from {
		if more := s.scores(x.id, within-1); more != nil {
			return append([]int{s.Maker(of)}, more...)
		}
	}
	return nil
}

// weighs lists the operators from the weights of an attention to their product with the values, which is last; nil where
// there is none.
func (s *site) weighs(weights program.ID) (list []int) {
	for range toScores {
		takers := s.takers(weights)
		if len(takers) == 0 {
			return nil
		}
		i := takers[0]
		for _, t := range takers {
			if isOne(s.Ops[t], products) {
				i = t
			}
		}
		list = append(list, i)
		o := s.Ops[i]
		if isOne(o, products) {
			if of := tensors(o); len(of) == 2 && of[0].id == weights {
				return list
			}
			return nil
		}
		if !isOne(o, elementwise) || len(o.Out) != 1 {
			return nil
		}
		weights = o.Out[0]
	}
	return nil
}

// isHiding reports whether a value says which keys are seen: bools, or zeros and what denies.
func (s *site) isHiding(id program.ID, keys int) bool {
	x, shape := s.base.Value(id), s.shape(id)
	if x == nil || len(shape) < 2 || shape[len(shape)-1] != keys {
		return false
	}
	return !isFloat(s.Values[id]) || !slices.ContainsFunc(x.Floats(), func(v float64) bool { return v != 0 && !vec.Denied(v) })
}

// Attends reports whether an operator makes the weights of an attention.
func Attends(o program.Op) bool {
	return isOne(o, fused) || strings.HasSuffix(o.Name, "softmax")
}

// Weighed are the weights of one attention, [batch, heads, queries, keys] or [heads, queries, keys].
type Weighed struct {
	Layer string
	Array *replay.Array
}

// AttentionWeights returns those of the attentions in a piece. A fused one is run on values that are 1 for one key each.
func AttentionWeights(b *replay.Base) (out []Weighed) {
	s := newSite(b, nil)
	for _, a := range s.attentions() {
		if a.softmax >= 0 {
			out = append(out, Weighed{s.Ops[a.softmax].Layer, b.Value(s.Ops[a.softmax].Out[0])})
			continue
		}
		o, w := s.Ops[a.k.op], &writer{s: s, e: &Edit{}}
		keys, weights := w.shape(s.at(a.k)), w.shape(s.at(a.q))
		keys[len(keys)-1], weights[len(weights)-1] = a.keys, a.keys
		ones := w.numbers(tensor.F32, keys, func() []float64 {
			x := make([]float64, size(keys))
			for i := range x {
				if i/a.keys%a.keys == i%a.keys {
					x[i] = 1
				}
			}
			return x
		})
		piece := *b.Piece
		piece.Out = w.made(o, program.Value{Shape: weights, DType: tensor.F32}, with(o.Args, "value", ones))
		of := *b
		of.Piece, w.e.Patch.Ops = &piece, map[int][]program.Op{a.k.op: w.ops}
		if x, err := of.Run(w.e.Patch); err == nil {
			out = append(out, Weighed{o.Layer, x})
		}
	}
	return out
}

// heads are attentions of more heads that are smaller, or of fewer that are larger: what stands between the views that
// make heads of rows and the one that makes rows of them again is written anew.
func heads(s *site) {
	for _, a := range s.attentions() {
		rows, shape, same := [3]program.ID{}, [2]int{}, true
		for i, in := range []input{a.q, a.k, a.v} {
			from, is, ok := s.headed(s.at(in))
			same = same && ok && (i == 0 || is == shape)
			rows[i], shape = from, is
		}
		join := s.joined(s.Ops[a.v.op].Out[0], shape)
		scale, masked, plain := s.plain(a)
		if !same || join < 0 || !plain {
			continue
		}
		h, d := shape[0], shape[1]
		for _, n := range []int{2 * h, h / 2, 4 * h, h / 4, d, 1} {
			if n < 1 || n == h || h*d%n != 0 {
				continue
			}
			width := h * d / n
			for _, by := range []float64{scale, scale * math.Sqrt(float64(d)/float64(width))} {
				what := text("%d heads of %d → %d of %d, scaled by %.4g", h, d, n, width, by)
				s.addAt("layout", 3, what, []int{join}, func(w *writer, o program.Op) { w.attends(o, a, rows, n, width, by, masked) }).ID = "attention/heads"
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
			return id, [2]int(to[2:]), true
		}
	}
	return rows, heads, false
}

// joined is the operator that makes rows of heads again; −1 where something else is done to them.
func (s *site) joined(id program.ID, heads [2]int) int {
	for t := s.takers(id); len(t) == 1 && isOne(s.Ops[t[0]], moving); t = s.takers(id) {
		o := s.Ops[t[0]]
		from, to := s.shape(id), s.shape(o.Out[0])
		if o.Name == "view" && len(from) == 4 && len(to) == 3 && [2]int(from[2:]) == heads {
			return t[0]
		}
		id = o.Out[0]
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
		case o.Name == "add" && !number && masked == program.None && s.ofAll(tensorOf(o, "other")):
			masked = tensorOf(o, "other")
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
		x = w.bmm(w.view(x, b*n, rows, depth), w.view(y, b*n, depth, columns))
		return w.view(x, b, n, rows, columns)
	}
	x := w.two("mul", product(q, w.transpose(k, -2, -1), from, width, to), scale)
	if masked != program.None {
		x = w.two("add", x, masked)
	}
	w.pass(o, w.transpose(product(shares(w, x), v, from, to, width), 1, 2))
}
