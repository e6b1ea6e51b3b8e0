package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
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
	return operand(s.Ops[in.op], in.arg)
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
		case isOne(o, fused) && operand(o, "key") != program.None:
			k := s.shape(operand(o, "key"))
			n := len(k) - 2
			out = append(out, attention{q: input{i, "query"}, k: input{i, "key"}, v: input{i, "value"}, kAxis: n, vAxis: n, mask: input{i, "attn_mask"},
				softmax: -1, ops: []int{i}, keys: k[n], queries: s.shape(operand(o, "query"))[n]})
		case isOne(o, "_softmax softmax"):
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
	names, ids := tensors(s.Ops[first])
	vNames, vIDs := tensors(s.Ops[last])
	if len(vIDs) != 2 || len(weighs) == 1 && vIDs[0] != shares || len(weighs) > 1 && vIDs[0] != s.Ops[weighs[len(weighs)-2]].Out[0] {
		return a, false
	}
	k, v := s.shape(ids[1]), s.shape(vIDs[1])
	a = attention{q: input{first, names[0]}, k: input{first, names[1]}, v: input{last, vNames[1]}, kAxis: len(k) - 1, vAxis: len(v) - 2,
		mask: input{op: -1}, softmax: softmax, ops: slices.Concat(scores, []int{softmax}, weighs), keys: k[len(k)-1]}
	slices.Sort(a.ops)
	if shape := s.shape(shares); len(shape) > 1 {
		a.queries = shape[len(shape)-2]
	}
	if a.vAxis < 0 || v[a.vAxis] != a.keys {
		return a, false
	}
	for _, i := range scores[:len(scores)-1] {
		names, ids := tensors(s.Ops[i])
		for k, id := range ids {
			if s.isHiding(id, a.keys) {
				a.mask = input{i, names[k]}
			}
		}
	}
	return a, true
}

// scores lists the operators that make what a softmax takes, back to the product of queries and keys, which is last; nil
// where there is none.
func (s *site) scores(of program.ID, within int) []int {
	o := s.made(of)
	_, ids := tensors(o)
	switch {
	case within == 0 || o.Name == "":
		return nil
	case isOne(o, products) && len(ids) == 2:
		return []int{s.Maker(of)}
	case !isOne(o, elementwise):
		return nil
	}
	for _, id := range ids {
		if more := s.scores(id, within-1); more != nil {
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
		switch o := s.Ops[i]; {
		case isOne(o, products):
			return list
		case !isOne(o, elementwise) || len(o.Out) != 1:
			return nil
		}
		weights = s.Ops[i].Out[0]
	}
	return nil
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
		keys, weights := slices.Clone(s.shape(s.at(a.k))), slices.Clone(s.shape(s.at(a.q)))
		keys[len(keys)-1], weights[len(weights)-1] = a.keys, a.keys
		ones := w.numbers(tensor.F32, keys, func() []float64 {
			return mapped(upTo(size(keys)), func(i int) float64 { return map[bool]float64{true: 1}[i/a.keys%a.keys == i%a.keys] })
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

// isHiding reports whether a value says which keys are seen: bools, or zeros and what denies.
func (s *site) isHiding(id program.ID, keys int) bool {
	x, shape := s.Value(id), s.shape(id)
	if x == nil || len(shape) < 2 || shape[len(shape)-1] != keys {
		return false
	}
	return !isFloat(s.Values[id]) || !slices.ContainsFunc(x.Floats(), func(v float64) bool { return v != 0 && !mask.Denies(v) })
}
