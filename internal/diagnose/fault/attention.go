package fault

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
)

// AttentionScale is attention whose scores have another scale.
func AttentionScale(o *rebuild.Attention) (out List) {
	hidden := float64(o.Width())
	if n := o.Scene().Config.Hidden(); n > 0 {
		hidden = float64(n)
	}
	d, heads, kv := float64(o.Dim), float64(o.Heads), float64(o.KV)
	for _, s := range []struct {
		text  string
		scale float64
		rank  int
	}{
		{"1/√hidden", 1 / math.Sqrt(hidden), 0},
		{"1 (none)", 1, 0},
		{"1/√head_dim", 1 / math.Sqrt(d), 0},
		{"1/head_dim (applied twice)", 1 / d, 0},
		{"√head_dim", math.Sqrt(d), 0},
		{"1/hidden", 1 / hidden, 1},
		{"1/√heads", 1 / math.Sqrt(heads), 1},
		{"1/√(kv heads)", 1 / math.Sqrt(kv), 1},
		{"1/√(2·head_dim)", 1 / math.Sqrt(2*d), 1},
		{"1/√(head_dim/2)", 1 / math.Sqrt(d/2), 1},
		{"head_dim^(−1/4)", math.Pow(d, -0.25), 1},
		{"twice the right one", 2 * o.Scale, 1},
		{"half the right one", o.Scale / 2, 1},
		{"1/√(kv heads·head_dim)", 1 / math.Sqrt(kv*d), 1},
	} {
		if math.Abs(s.scale/o.Scale-1) > sameScale {
			out.add(with(o, func(a *rebuild.Attention) { a.Scale = s.scale }), s.rank,
				"the scores are scaled by %s = %.6g and not by %.6g", s.text, s.scale, o.Scale)
		}
	}
	return append(out, o.Out.Searched("the scores are scaled by another number",
		o.Scale/scaleReach, o.Scale*scaleReach, o.Work, func(x float64) rebuild.Eval {
			return with(o, func(a *rebuild.Attention) { a.Scale = x })
		}))
}

// Scores is attention without the soft cap of its scores, or without the learned sinks.
func Scores(o *rebuild.Attention) (out List) {
	if o.Sinks != nil {
		out.add(with(o, func(a *rebuild.Attention) { a.Sinks = nil }), 0,
			"the learned sinks are left out of the softmax")
	}
	if o.Cap > 0 {
		out.add(with(o, func(a *rebuild.Attention) { a.Cap = 0 }), 0, "the soft cap of the scores is missing").ID =
			"config/attn_logit_softcapping"
	}
	return out
}

// SoftmaxAxis is a softmax over another axis than the keys.
func SoftmaxAxis(o *rebuild.Attention) (out List) {
	out.add(with(o, func(a *rebuild.Attention) { a.Axis = op.OverQueries }), 0,
		"the softmax goes over the queries and not over the keys")
	out.add(with(o, func(a *rebuild.Attention) { a.Axis = op.OverHeads }), 0,
		"the softmax goes over the heads and not over the keys")
	return out
}

// Groups is attention whose heads use other heads of k and v.
func Groups(o *rebuild.Attention) (out List) {
	one := with(o, func(a *rebuild.Attention) { a.OneKV = true })
	const first = "all heads use the first kv head"
	switch {
	case o.KV < o.Heads && o.KV > 1:
		ways := []string{"each in a row (0 0 … 1 1 …)", "in turn (0 1 … 0 1 …)"}
		if o.Tiled {
			slices.Reverse(ways)
		}
		out.add(with(o, func(a *rebuild.Attention) { a.Tiled = !a.Tiled }), 0,
			"the kv heads are repeated %s and not %s", ways[1], ways[0])
		out.add(one, 0, first)
		for roll := 1; roll < o.KV; roll += max(o.KV-2, 1) {
			out.add(with(o, func(a *rebuild.Attention) { a.RollKV = roll }), 0,
				"each group of heads uses the kv head %+d", roll)
		}
	case o.KV == o.Heads && o.Heads > 1:
		out.add(one, 1, first)
		for kv := 2; kv < o.Heads; kv *= 2 {
			if o.Heads%kv == 0 {
				out.add(with(o, func(a *rebuild.Attention) { a.KV = kv }), 1, "only the first %d kv heads are used", kv)
				out.add(with(o, func(a *rebuild.Attention) { a.KV, a.Tiled = kv, true }), 1,
					"only the first %d kv heads are used, in turn", kv)
			}
		}
	}
	return out
}

// Heads is attention whose columns are read or written as other heads.
func Heads(o *rebuild.Attention) (out List) {
	if o.ValueDim == 0 {
		out = headCounts(o)
	}
	if o.Heads == 1 {
		return out
	}
	add := func(rank int, text string, q, k, v, write op.Order) {
		out.add(with(o, func(a *rebuild.Attention) {
			a.Q.Order, a.K.Order, a.V.Order, a.Write = q, k, v, write
		}), rank, "%s", text)
	}
	const h, c, u = op.ByHead, op.ByColumn, op.Unmoved
	add(0, "the heads are not moved back behind the tokens: the context is read as [heads, tokens, d]", h, h, h, u)
	if !o.Q.Grouped {
		add(0, "q, k and v are read as [heads, tokens, d] without moving an axis, and so is the context", u, u, u, u)
		add(0, "q, k and v are read as [heads, tokens, d] without moving an axis", u, u, u, h)
		add(0, "the columns of q, k and v are read as [d, heads]", c, c, c, h)
		add(0, "the columns of q, k, v and of the context are [d, heads]", c, c, c, c)
		add(1, "q is read as [d, heads]", c, h, h, h)
		add(1, "q is read as [heads, tokens, d]", u, h, h, h)
		add(1, "k is read as [d, heads]", h, c, h, h)
		add(1, "k is read as [heads, tokens, d]", h, u, h, h)
		add(1, "v is read as [d, heads]", h, h, c, h)
		add(1, "v is read as [heads, tokens, d]", h, h, u, h)
	}
	add(0, "the heads of the context are written as [d, heads]", h, h, h, c)
	for roll := 1; roll < min(o.Heads, maxRoll+1); roll++ {
		out.add(with(o, func(a *rebuild.Attention) { a.Roll = roll }), 1, "the heads of the context are moved by %d", roll)
	}
	return out
}

// headCounts is attention of another number of heads.
func headCounts(o *rebuild.Attention) (out List) {
	width, kvWidth, freqs := o.Width(), o.KV*o.Dim, o.Rope.Q.Freqs
	for h := 1; h <= min(width, maxHeads); h++ {
		d := width / h
		if width%h != 0 || h == o.Heads || d < 2 || o.Q.Grouped || kvWidth%d != 0 || 2*len(freqs) > d {
			continue
		}
		kv := kvWidth / d
		if kv == 0 || h%kv != 0 {
			continue
		}
		for i, scale := range []float64{1 / math.Sqrt(float64(d)), o.Scale} {
			out.add(with(o, func(a *rebuild.Attention) {
				a.Heads, a.KV, a.Dim, a.Scale = h, kv, d, scale
				if 2*len(freqs) == o.Dim && o.Rope.Theta > 0 {
					a.Rope.Q.Freqs = op.Frequencies(o.Rope.Theta, d)
					a.Rope.K.Freqs = a.Rope.Q.Freqs
				}
			}), i, "%d heads of %d and not %d of %d, scores scaled by %.4g", h, d, o.Heads, o.Dim, scale)
		}
	}
	return out
}

// QKVOrder is attention that takes q for k and the like.
func QKVOrder(o *rebuild.Attention) (out List) {
	projections, columns := o.Projections, [3]op.Columns{o.Q, o.K, o.V}
	for _, p := range permutations {
		out.add(with(o, func(a *rebuild.Attention) {
			a.Q, a.K, a.V = columns[p[0]], columns[p[1]], columns[p[2]]
			a.Projections = [3]*rebuild.Value{projections[p[0]], projections[p[1]], projections[p[2]]}
		}), 0, "q, k and v are exchanged in the attention")
	}
	return out
}

// permutations are the other orders of q, k and v.
var permutations = [][]int{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}

// Stale is attention on the q, k or v of the block before.
func Stale(o *rebuild.Attention) (out List) {
	values := o.Graph().Earlier(o.Projections[2])
	for i, p := range o.Projections {
		for _, x := range o.Graph().Earlier(p) {
			out.add(with(o, func(a *rebuild.Attention) { a.Projections[i] = x }), 0, "%c is still %s", "qkv"[i], x)
			block := label.Block(x.Layer())
			for _, y := range values {
				if i == 1 && label.Block(y.Layer()) == block {
					out.add(with(o, func(a *rebuild.Attention) { a.Projections[1], a.Projections[2] = x, y }), 0,
						"k and v are still those of %s", block)
				}
			}
		}
	}
	return out
}
