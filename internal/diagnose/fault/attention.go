package fault

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
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
		{"the right one twice over", o.Scale * o.Scale, 1},
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

// Scores is attention whose scores are bent otherwise, or with other learned sinks.
func Scores(o *rebuild.Attention) (out List) {
	sinks := func(rank int, text string, x []float64) {
		out.add(with(o, func(a *rebuild.Attention) { a.Sinks = x }), rank, "%s", text)
	}
	if n := len(o.Sinks); n > 0 {
		sinks(0, "the learned sinks are left out of the softmax", nil)
		sinks(0, "the learned sinks are zeros", make([]float64, n))
		sinks(0, "the learned sinks have the other sign", op.Scaled(o.Sinks, -1))
		sinks(1, "the learned sinks are multiplied by the scale of the scores", op.Scaled(o.Sinks, o.Scale))
		if n > 1 {
			sinks(0, "each head has the learned sink of the next", slices.Concat(o.Sinks[1:], o.Sinks[:1]))
			sinks(0, "each head has the learned sink of the one before", slices.Concat(o.Sinks[n-1:], o.Sinks[:n-1]))
			sinks(0, "all heads have the learned sink of the first", slices.Repeat(o.Sinks[:1], n))
		}
		keys := o.Scene().Weights.Keys(func(key string, w *tensor.Tensor) bool { return label.Last(key) == "sinks" && w.Len() == n })
		for _, key := range keys[:min(len(keys), otherNorms)] {
			if x := op.ReadAll(o.Scene().Weights[key]); !slices.Equal(x, o.Sinks) {
				sinks(1, "the learned sinks are those of "+label.Parent(key), x)
			}
		}
	} else if o.Axis == op.OverKeys {
		sinks(1, "the softmax has one more score, 0, which the reference has not got", make([]float64, o.Heads))
	}
	capped := func(rank int, text string, limit float64) {
		out.add(with(o, func(a *rebuild.Attention) { a.Cap = limit }), rank, "%s", text).ID = capID
	}
	if o.Cap == 0 {
		for _, c := range []float64{50, 30} {
			capped(1, fmt.Sprintf("the scores have a soft cap, %g, which the reference has not got", c), c)
		}
		return out
	}
	capped(0, "the soft cap of the scores is missing", 0)
	capped(0, fmt.Sprintf("the soft cap of the scores, %.4g, is applied before they are scaled", o.Cap), o.Cap*o.Scale)
	for _, f := range []float64{2, 0.5} {
		capped(0, fmt.Sprintf("the soft cap of the scores is %.4g and not %.4g", f*o.Cap, o.Cap), f*o.Cap)
	}
	if c, ok := o.Scene().Config.Float("final_logit_softcapping"); ok && c > 0 && c != o.Cap {
		capped(0, fmt.Sprintf("the soft cap of the scores is that of the logits, %.4g", c), c)
	}
	f := o.Out.Searched(fmt.Sprintf("the soft cap of the scores is another number than %.4g", o.Cap), o.Cap/scaleReach, o.Cap*scaleReach, o.Work,
		func(x float64) rebuild.Eval { return with(o, func(a *rebuild.Attention) { a.Cap = x }) })
	f.ID = capID
	return append(out, f)
}

// capID is the cause of a wrong soft cap of the scores.
const capID = "config/attn_logit_softcapping"

// SoftmaxAxis is a softmax over another axis than the keys.
func SoftmaxAxis(o *rebuild.Attention) (out List) {
	out.add(with(o, func(a *rebuild.Attention) { a.Axis = op.OverQueries }), 0,
		"the softmax goes over the queries and not over the keys")
	out.add(with(o, func(a *rebuild.Attention) { a.Axis = op.OverHeads }), 0,
		"the softmax goes over the heads and not over the keys")
	return out
}

// Groups is attention whose heads use other heads of k, of v, or of both.
func Groups(o *rebuild.Attention) (out List) {
	if o.Heads == 1 || o.ValueDim != 0 {
		return nil
	}
	add := func(rank int, text string, g op.Grouping) {
		for i, of := range []string{"k and v", "k alone", "v alone"} {
			out.add(with(o, func(a *rebuild.Attention) {
				if i != 2 {
					a.OfK = g
				}
				if i != 1 {
					a.OfV = g
				}
			}), rank+min(i, 1), "%s, of %s", text, of)
		}
	}
	const first = "all heads use the first kv head"
	switch {
	case o.KV < o.Heads && o.KV > 1:
		add(0, "the kv heads are repeated in turn (0 1 … 0 1 …) and not each in a row (0 0 … 1 1 …)", op.Grouping{Tiled: true})
		add(0, first, op.Grouping{One: true})
		for roll := 1; roll < o.KV; roll += max(o.KV-2, 1) {
			add(0, fmt.Sprintf("each group of heads uses the kv head %+d", roll), op.Grouping{Roll: roll})
		}
	case o.KV == o.Heads:
		add(1, first, op.Grouping{One: true})
		for kv := 2; kv < o.Heads; kv *= 2 {
			if o.Heads%kv == 0 {
				out.add(with(o, func(a *rebuild.Attention) { a.KV = kv }), 1, "only the first %d kv heads are used", kv)
				out.add(with(o, func(a *rebuild.Attention) { a.KV, a.OfK.Tiled, a.OfV.Tiled = kv, true, true }), 1,
					"only the first %d kv heads are used, in turn", kv)
			}
		}
	}
	for _, shift := range slices.Compact([]int{1, o.Heads - 1}) {
		add(1, fmt.Sprintf("each head uses the kv head of the head %+d", shift), op.Grouping{Shift: shift})
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
		out.add(with(o, func(a *rebuild.Attention) { a.Q.Roll = roll }), 1, "each head uses the q of the head %d further on", roll)
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
	if projections[0] == projections[1] && projections[0].Width == 3*o.Heads*o.Dim {
		is, not := "[3, heads, elements]", "[heads, 3, elements]"
		if !o.Q.Grouped {
			is, not = not, is
		}
		out.add(with(o, func(a *rebuild.Attention) {
			a.Q.Grouped, a.K.Grouped, a.V.Grouped = !o.Q.Grouped, !o.K.Grouped, !o.V.Grouped
		}), 0, "the columns of q, k and v are read as %s and not as %s", is, not)
	}
	return out
}

// permutations are the other orders of q, k and v.
var permutations = [][]int{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}

// Shifted is attention whose keys or values lie one place late or early.
func Shifted(o *rebuild.Attention) (out List) {
	n := cmp.Or(o.Keys, o.Tokens)
	if o.Latent != nil || n < 2 {
		return nil
	}
	for _, by := range []int{-1, 1} {
		place := "late"
		if by > 0 {
			place = "early"
		}
		for i, edge := range []string{"with zeros at the end", "round the end"} {
			at := func(b, s int) (int, int) {
				switch to := s + by; {
				case to >= 0 && to < n:
					return b, to
				case i == 1:
					return b, (to + n) % n
				}
				return b, -1
			}
			out.add(with(o, func(a *rebuild.Attention) { a.KeyAt, a.ValueAt = at, at }), 1, "keys and values lie one place %s, %s", place, edge)
			out.add(with(o, func(a *rebuild.Attention) { a.KeyAt = at }), 1, "the keys lie one place %s, %s", place, edge)
			out.add(with(o, func(a *rebuild.Attention) { a.ValueAt = at }), 1, "the values lie one place %s, %s", place, edge)
		}
	}
	return out
}

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
