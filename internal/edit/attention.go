package edit

import (
	"context"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// operand is one of an operator.
type operand struct {
	op  int
	arg string
}

func (s *site) at(o operand) program.ID { return s.Ops[o.op].Args.Get(o.arg).(program.ID) }

// attention is softmax(q·kᵀ … + mask)·v in a piece, fused or not.
type attention struct {
	k, v         operand
	kAxis, vAxis int     // of the keys
	mask         operand // op −1 for none
	softmax      int     // −1 where it is fused
	ops          []int   // from the product of queries and keys to that of the weights and values
	queries      int
	keys         int
}

var (
	products    = []string{"bmm", "mm", "matmul"}
	elementwise = []string{"mul", "div", "add", "sub", "tanh", "where", "masked_fill", "_to_copy", "view", "_unsafe_view", "clone", "maximum", "expand", "detach", "alias"}
)

// attentions lists those of a piece.
func (s *site) attentions() (out []attention) {
	for i, o := range s.Ops {
		switch {
		case strings.Contains(o.Name, "scaled_dot_product"):
			k, is := o.Args.Get("key").(program.ID)
			if !is {
				continue
			}
			n := len(s.shape(k))
			a := attention{k: operand{i, "key"}, v: operand{i, "value"}, kAxis: n - 2, vAxis: n - 2, mask: operand{i, "attn_mask"}, softmax: -1, ops: []int{i}, keys: s.shape(k)[n-2], queries: s.shape(o.Args.Get("query").(program.ID))[n-2]}
			out = append(out, a)
		case o.Name == "_softmax" || o.Name == "softmax":
			if a, ok := s.attention(i); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

// attention is the one of a softmax, by the products before and after it.
func (s *site) attention(softmax int) (a attention, ok bool) {
	scores := s.scores(s.Ops[softmax].Args.Get("self"), toScores+2)
	if scores == nil {
		return a, false
	}
	first := scores[len(scores)-1]
	a = attention{softmax: softmax, mask: operand{op: -1}, ops: append(slices.Clone(scores), softmax)}
	last, v := s.Ops[softmax].Out[0], -1
	for range toScores {
		takers := s.takers(last)
		if len(takers) == 0 {
			return a, false
		}
		i := takers[0]
		for _, t := range takers {
			if slices.Contains(products, s.Ops[t].Name) {
				i = t
			}
		}
		if slices.Contains(products, s.Ops[i].Name) {
			v = i
			break
		}
		if !slices.Contains(elementwise, s.Ops[i].Name) || len(s.Ops[i].Out) != 1 {
			return a, false
		}
		a.ops, last = append(a.ops, i), s.Ops[i].Out[0]
	}
	if v < 0 {
		return a, false
	}
	names, ids := tensors(s.Ops[first])
	a.k, a.kAxis = operand{first, names[1]}, len(s.shape(ids[1]))-1
	vNames, vIDs := tensors(s.Ops[v])
	if len(vIDs) != 2 || vIDs[0] != last {
		return a, false
	}
	a.ops = append(a.ops, v)
	slices.Sort(a.ops)
	a.v, a.vAxis = operand{v, vNames[1]}, len(s.shape(vIDs[1]))-2
	a.keys = s.shape(ids[1])[a.kAxis]
	if scores := s.shape(s.Ops[softmax].Out[0]); len(scores) > 1 {
		a.queries = scores[len(scores)-2]
	}
	if a.vAxis < 0 || s.shape(vIDs[1])[a.vAxis] != a.keys {
		return a, false
	}
	for _, i := range scores {
		names, ids := tensors(s.Ops[i])
		for k, id := range ids {
			if i != first && s.isHiding(id, a.keys) {
				a.mask = operand{i, names[k]}
			}
		}
	}
	return a, true
}

// scores lists the operators that make what a softmax takes, back to the product of queries and keys, which is last; nil
// where there is none.
func (s *site) scores(of any, within int) []int {
	id, ok := of.(program.ID)
	if !ok || id == program.None || within == 0 {
		return nil
	}
	i := s.Maker(id)
	switch {
	case i < 0:
		return nil
	case slices.Contains(products, s.Ops[i].Name):
		if _, ids := tensors(s.Ops[i]); len(ids) == 2 {
			return []int{i}
		}
		return nil
	case !slices.Contains(elementwise, s.Ops[i].Name):
		return nil
	}
	_, ids := tensors(s.Ops[i])
	for _, id := range ids {
		if more := s.scores(id, within-1); more != nil {
			return append([]int{i}, more...)
		}
	}
	return nil
}

// Attends reports whether an operator makes the weights of an attention.
func Attends(o program.Op) bool {
	return strings.Contains(o.Name, "scaled_dot_product") || strings.HasSuffix(o.Name, "softmax")
}

// Weighed are the weights of one attention, [batch, heads, queries, keys] or [heads, queries, keys].
type Weighed struct {
	Layer string
	Array *replay.Array
}

// AttentionWeights returns those of the attentions in a piece. A fused one is run on values that are 1 for one key each.
func AttentionWeights(ctx context.Context, b *replay.Base) (out []Weighed) {
	s := newSite(b, nil)
	for _, a := range s.attentions() {
		if a.softmax >= 0 {
			out = append(out, Weighed{s.Ops[a.softmax].Layer, b.Value(s.Ops[a.softmax].Out[0])})
			continue
		}
		o := s.Ops[a.k.op]
		keys := s.shape(s.at(a.k))
		n := len(keys)
		eye := make([]float64, size(keys[:n-1])*a.keys)
		for i := range size(keys[:n-1]) {
			eye[i*a.keys+i%a.keys] = 1
		}
		shape := slices.Clone(s.shape(o.Args.Get("query").(program.ID)))
		shape[n-1] = a.keys
		values := append(slices.Clone(s.Values), constantOf(eye, append(slices.Clone(keys[:n-1]), a.keys), tensor.F32), program.Value{Shape: shape, DType: tensor.F32})
		o.Args, o.Out = with(o.Args, "value", program.ID(len(values)-2)), []program.ID{program.ID(len(values) - 1)}
		p := &program.Piece{Program: s.With(values, []program.Op{o}), Out: o.Out[0], Origin: []int{0}}
		fused, err := replay.NewBase(ctx, p, func(v *program.Value) (*replay.Array, error) {
			for i := range s.Values {
				if v == &values[i] {
					return b.Value(program.ID(i)), nil
				}
			}
			return replay.Of(tensor.F32, v.Shape, eye)
		}, replay.Mode{})
		if err == nil {
			out = append(out, Weighed{o.Layer, fused.Value(p.Out)})
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
