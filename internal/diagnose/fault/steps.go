package fault

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// Steps is attention whose last slot of the cache was not written, and that of a decode step whose
// cache, or whose positions, are wrong, in a run that tells its steps and no path: for that State knows
// more.
func Steps(o *rebuild.Attention) (out List) {
	fed := o.Scene().Fed
	if fed != nil && !fed.Steps || o.Keys != 0 || o.Tokens > longestCache || o.Tokens < 2 || !o.Mask.Causal {
		return nil
	}
	from, n := o.Tokens-1, o.Tokens
	if fed != nil {
		from = fed.From
		stepPositions(o, from, &out)
	}
	lies := func(rank int, text string, of func(s int) int) {
		at := func(b, s int) (int, int) { return b, of(s) }
		out.add(with(o, func(a *rebuild.Attention) { a.KeyAt, a.ValueAt = at, at }), rank-1, "%s", text)
		out.add(with(o, func(a *rebuild.Attention) { a.KeyAt = at }), rank, "%s, the keys alone", text)
		out.add(with(o, func(a *rebuild.Attention) { a.ValueAt = at }), rank, "%s, the values alone", text)
	}
	own := func(of int) func(s int) int {
		return func(s int) int {
			if s >= from {
				return of
			}
			return s
		}
	}
	lies(0, "the slot of the last token holds what the one before has: the cache is read before it is written", own(from-1))
	lies(1, "the slot of the last token holds zeros: the cache is read before it is written", own(-1))
	if fed == nil {
		return out
	}
	lies(2, "the slot of the step's own token holds the first token", own(0))
	lies(1, "the earlier keys and values lie a slot late: the first is there twice, the last is lost", func(s int) int {
		if s >= from {
			return s
		}
		return max(s-1, 0)
	})
	lies(1, "the earlier keys and values lie a slot early: the first is lost, the last is there twice", func(s int) int {
		if s >= from-1 {
			return s
		}
		return s + 1
	})
	lies(1, "the step's own token is written over the one before it", func(s int) int {
		if s == from-1 {
			return n - 1
		}
		return s
	})
	lies(1, "the step's own token is written over the first one", func(s int) int {
		if s == 0 {
			return n - 1
		}
		return s
	})
	lies(2, "the earlier slots hold zeros: the cache was cleared", func(s int) int {
		if s < from {
			return -1
		}
		return s
	})
	lies(1, "the first slot holds zeros", func(s int) int {
		if s == 0 {
			return -1
		}
		return s
	})
	seen := func(text string, allows func(t, s int) bool) {
		right := o.Mask
		out.add(with(o, func(a *rebuild.Attention) {
			a.Mask = &op.Mask{Add: right.Add, Allow: func(b, t, s int) bool {
				return (right.Allow == nil || right.Allow(b, t, s)) && (t < from || allows(t, s))
			}}
		}), 0, "%s", text).ID = "attention/mask"
	}
	seen("the step does not see the last token before it: the cache is taken to be one shorter", func(_, s int) bool { return s != from-1 })
	seen("the step's token does not see itself", func(t, s int) bool { return s != t })
	seen("the step sees its own tokens only, nothing in the cache", func(_, s int) bool { return s >= from })
	return out
}

// stepPositions are rotations of the step by other positions; the keys of earlier ones keep theirs.
func stepPositions(o *rebuild.Attention, from int, out *List) {
	if !isRotated(o) {
		return
	}
	each := func(rank int, text string, of func(right float64, t int) float64, alone bool) {
		at := make([]float64, max(o.Tokens, len(o.Rope.Q.At)))
		for i := range at {
			t, right := i%o.Tokens, float64(i%o.Tokens)
			if o.Rope.Q.At != nil {
				right = o.Rope.Q.At[i]
			}
			if at[i] = right; t >= from {
				at[i] = of(right, t)
			}
		}
		q := func(r *op.Rope) { r.Q.At, r.Q.By = at, nil }
		k := func(r *op.Rope) { r.K.At, r.K.By = at, nil }
		out.add(rotated(o, func(r *op.Rope) { q(r); k(r) }), rank-1, "%s", text).ID = "rope/offset"
		if !alone {
			return
		}
		out.add(rotated(o, q), rank+1, "%s, those of q alone", text).ID = "rope/offset"
		out.add(rotated(o, k), rank+1, "%s, those of k alone", text).ID = "rope/offset"
	}
	add := func(rank int, text string, of func(right float64, t int) float64) { each(rank, text, of, true) }
	if o.Rope.Q.At != nil {
		add(0, "the positions of the step count the padding", func(_ float64, t int) float64 { return float64(t) })
	}
	add(0, "the positions of the step begin at 0 again", func(_ float64, t int) float64 { return float64(t - from) })
	for _, by := range []int{1, -1, 2, -2, 3, -3} {
		if by != -from {
			add(1, fmt.Sprintf("the positions of the step are off by %+d", by), func(right float64, _ int) float64 { return right + float64(by) })
		}
	}
	for p := range 2*from + 4 {
		if o.Tokens <= everyPosition {
			each(2, fmt.Sprintf("the position of the step is %d, whatever its place", p), func(float64, int) float64 { return float64(p) }, false)
		}
	}
}
