package replay

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// attentions are fused attention, whichever kernel the reference ran.
var attentions = family{"scaled_dot_product_attention": one(attention)}

// heads are the operands of attention, [batch, heads, rows, width].
type heads struct {
	mode          *Mode
	q, k, v, mask *Array
	scale         float64
	causal        bool
}

// attention is softmax(q·kᵀ·scale + mask)·v of each head. Heads may share keys and values. What a mask
// of bools has not, and what lies after a query in causal attention, is denied; a query that is denied
// every key gets 0.
func attention(c *Call) *Array {
	if c.float("dropout_p", 0) != 0 {
		fail("attention with dropout")
	}
	h := &heads{mode: &c.mode, causal: c.is("is_causal")}
	h.q, h.k = c.factors("query", "key")
	_, h.v = c.factors("query", "value")
	for _, a := range []**Array{&h.q, &h.k, &h.v} {
		for len((*a).shape) < 4 {
			*a = (*a).with(0)
		}
	}
	q, k, v := h.q.shape, h.k.shape, h.v.shape
	if len(q) != 4 || len(k) != 4 || len(v) != 4 || k[1] == 0 || q[1]%k[1] != 0 || k[0] != q[0] || k[3] != q[3] ||
		!slices.Equal(v[:3], k[:3]) {
		fail("attention of %v, %v and %v", q, k, v)
	}
	h.scale = c.float("scale", 1/math.Sqrt(float64(q[3])))
	if h.mask = c.optional("attn_mask"); h.mask != nil {
		h.mask = h.mask.broadcast([]int{q[0], q[1], q[2], k[2]})
	}
	out := newArray(tensor.F32, []int{q[0], q[1], q[2], v[3]}, c.wide(h.q, h.k) || h.v.d != nil)
	if out.f != nil {
		attend(h, out.f)
	} else {
		out.dtype = tensor.F64
		attend(h, out.d)
	}
	return out.reshape(c.shape(0)).cast(c.value(0).DType, c.mode.Wide)
}

// matrix returns that of one head, as one of one.
func (a *Array) matrix(batch, head int) *Array {
	return a.slice(0, batch, 1, 1).without(0).slice(0, head, 1, 1)
}

// attend adds the result of each head to dst.
func attend[T floating](h *heads, dst []T) {
	queries, keys, n := h.q.shape[2], h.k.shape[2], h.q.shape[1]
	each := queries * h.v.shape[3]
	parallel(h.q.shape[0]*n, queries*keys*(h.q.shape[3]+h.v.shape[3]), func() func(i int) {
		weights := make([]T, queries*keys)
		line, mask := make([]float64, keys), make([]float64, keys)
		if h.mask == nil {
			mask = nil
		}
		return func(i int) {
			batch, head := i/n, i%n
			shared := head * h.k.shape[1] / n
			clear(weights)
			multiply(weights, h.q.matrix(batch, head), h.k.matrix(batch, shared).transpose([]int{0, 2, 1}))
			for t := range queries {
				row := weights[t*keys:][:keys]
				for j, v := range row {
					line[j] = float64(v * T(h.scale))
				}
				if mask != nil {
					read(h.mask, mask, (i*queries+t)*keys)
				}
				h.share(line, mask, t, 2*(i*queries+t))
				for j, v := range line {
					row[j] = T(v)
				}
			}
			multiply(dst[i*each:][:each], arrayOf([]int{1, queries, keys}, weights), h.v.matrix(batch, shared))
		}
	})
}

// absorbs is the size of a number next to which float32 has no fractions: 2²⁴.
const absorbs = 1 << 24

// share makes weights of the scores of a query. Both are rounded as results of their own: an attention that
// is not fused has them.
func (h *heads) share(scores, mask []float64, query, seed int) {
	for j := query + 1; h.causal && j < len(scores); j++ {
		scores[j] = math.Inf(-1)
	}
	for j, m := range mask {
		switch {
		case h.mask.dtype == tensor.Bool && m == 0:
			scores[j] = math.Inf(-1)
		case h.mask.dtype == tensor.Bool:
		case math.Abs(m) < absorbs:
			scores[j] += m
		default: // of −1e9 + score float32 has no score left: a row of them is even in any mode
			scores[j] = float64(float32(scores[j] + m))
		}
	}
	roundAll(h.mode, scores, uint64(seed))
	if math.IsInf(greatest(scores), -1) {
		clear(scores)
		return
	}
	softmaxOf(scores, scores)
	roundAll(h.mode, scores, uint64(seed)+1)
}
