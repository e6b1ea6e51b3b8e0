package replay

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// products are those of matrices, and convolutions of [batch, channels, axes…] with any number of axes. In float32 they
// are calculated in float32, as the reference's are.
var products = family{
	"mm": multiplied("self", "mat2", ""), "addmm": multiplied("mat1", "mat2", "self"),
	"bmm": multiplied("self", "mat2", ""), "baddbmm": multiplied("batch1", "batch2", "self"),
	"mv": multiplied("self", "vec", ""), "dot": multiplied("self", "tensor", ""),
	"_grouped_mm": one(grouped), "convolution": one(convolution),
}

// multiplied is the kernel of a product of two operands, and what is added to it.
func multiplied(left, right, bias string) kernel {
	return one(func(c *Call) *Array {
		a, b := c.factors(left, right)
		if len(a.shape) == 1 {
			a = a.with(0)
		}
		if len(b.shape) == 1 {
			b = b.with(1)
		}
		p := c.product(a, b)
		if len(p.shape) > len(c.shape(0)) { // of vectors
			p = p.reshape(c.shape(0))
		}
		switch {
		case p.complex && bias == "":
			return c.complexly(func(x, _ complex128) complex128 { return x }, p, p)
		case p.complex:
			alpha, beta := complex(c.float("alpha", 1), 0), complex(c.float("beta", 1), 0)
			return c.complexly(func(x, y complex128) complex128 { return alpha*x + beta*y }, p, c.tensor(bias))
		case bias == "":
			return c.plus(p, nil)
		}
		return c.plus(p, c.tensor(bias))
	})
}

// product is a·b for matrices [m, k] and [k, n], or as many of them in both, not rounded yet.
func (c *Call) product(a, b *Array) *Array {
	n := len(a.shape)
	if n == 2 && len(b.shape) == 2 {
		return c.product(a.with(0), b.with(0)).without(0)
	}
	if n != 3 || len(b.shape) != 3 || a.shape[2] != b.shape[1] || a.shape[0] != b.shape[0] {
		fail("product of %v and %v", a.shape, b.shape)
	}
	if a.complex || b.complex {
		return c.complexProduct(a, b)
	}
	out := c.sums([]int{a.shape[0], a.shape[1], b.shape[2]}, a, b)
	if multiply(out, a, b); !a.isFloat() {
		whole(out.d)
	}
	return out
}

// complexProduct is that of real parts: (x + iy)·(u + iv) = (xu − yv) + i(xv + yu).
func (c *Call) complexProduct(a, b *Array) *Array {
	x, y := a.parts()
	u, v := b.parts()
	xu, yv, xv, yu := c.product(x, u).floats64(), c.product(y, v).floats64(), c.product(x, v).floats64(), c.product(y, u).floats64()
	pairs := make([]float64, 0, 2*len(xu))
	for i := range xu {
		pairs = append(pairs, xu[i]-yv[i], xv[i]+yu[i])
	}
	out := newArray(tensor.F64, []int{a.shape[0], a.shape[1], b.shape[2], 2}, true)
	out.write(pairs, 0)
	return out.asComplex()
}

// sums are zeros that products of operands are added to: float64 where an operand or the mode is.
func (c *Call) sums(shape []int, of ...*Array) *Array {
	if c.mode.Wide || slices.ContainsFunc(of, func(a *Array) bool { return a.d != nil }) {
		return newArray(tensor.F64, shape, true)
	}
	return newArray(tensor.F32, shape, false)
}

// plus is alpha·product + beta·bias, rounded to the recorded type. A beta of 0 leaves NaN of the bias
// out.
func (c *Call) plus(product, bias *Array) *Array {
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	if bias == nil || beta == 0 && alpha == 1 {
		return product.cast(c.value(0).DType, c.mode.Wide)
	}
	if beta == 0 {
		bias = &Array{dtype: tensor.F64, d: []float64{0}}
	}
	return c.eachOf(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = alpha*v + beta*x[1][i]
		}
	}, []*Array{product, bias})
}

// grouped is the product of rows that belong to groups with a matrix of each: [m, k] with [g, k, n],
// where group i ends at row offs[i]. Rows after the last group are zero.
func grouped(c *Call) *Array {
	a, b := c.factors("self", "mat2")
	offs := c.optional("offs")
	if c.optional("bias") != nil {
		fail("a grouped product with a bias")
	}
	if offs == nil && len(a.shape) == 3 {
		return c.plus(c.product(a, b), nil)
	}
	if offs == nil || len(a.shape) != 2 || len(b.shape) != 3 || offs.Len() != b.shape[0] {
		fail("grouped product of %v and %v", a.shape, b.shape)
	}
	out := c.sums([]int{a.shape[0], b.shape[2]}, a, b)
	from := 0
	for i, end := range offs.Floats() {
		n := int(end) - from
		out.slice(0, from, n, 1).put(c.product(a.slice(0, from, n, 1), b.slice(0, i, 1, 1).without(0)))
		from += n
	}
	return out.cast(c.value(0).DType, c.mode.Wide)
}

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
	out := c.sums([]int{q[0], q[1], q[2], v[3]}, h.q, h.k, h.v)
	h.attend(out)
	return out.reshape(c.shape(0)).cast(c.value(0).DType, c.mode.Wide)
}

// matrix returns that of one head, as one of one.
func (a *Array) matrix(batch, head int) *Array {
	return a.slice(0, batch, 1, 1).without(0).slice(0, head, 1, 1)
}

// attend adds the result of each head to out.
func (h *heads) attend(out *Array) {
	queries, keys, n := h.q.shape[2], h.k.shape[2], h.q.shape[1]
	parallel(h.q.shape[0]*n, queries*keys*(h.q.shape[3]+h.v.shape[3]), func() func(i int) {
		weights, line, mask := like(out, []int{1, queries, keys}), make([]float64, keys), []float64(nil)
		if h.mask != nil {
			mask = make([]float64, keys)
		}
		return func(i int) {
			batch, head := i/n, i%n
			shared := head * h.k.shape[1] / n
			weights.clear()
			multiply(weights, h.q.matrix(batch, head), h.k.matrix(batch, shared).transpose([]int{0, 2, 1}))
			for t := range queries {
				read(weights, line, t*keys)
				for j, v := range line {
					if line[j] = v * h.scale; weights.f != nil {
						line[j] = float64(float32(v) * float32(h.scale))
					}
				}
				if mask != nil {
					read(h.mask, mask, (i*queries+t)*keys)
				}
				h.share(line, mask, t, 2*(i*queries+t))
				weights.write(line, t*keys)
			}
			multiply(out.matrix(batch, head), weights, h.v.matrix(batch, shared))
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

// windows say which elements a kernel takes, by axis: how many, how far apart they are, and how far the
// windows.
type windows struct{ taps, apart, step []int }

// perAxis returns integers for each of some axes; one stands for all.
func (c *Call) perAxis(name string, n, otherwise int) []int {
	x := c.ints(name)
	for _, v := range x {
		if v < 0 || v > widest || v == 0 && !strings.HasSuffix(name, "padding") {
			fail("%s %v", name, x)
		}
	}
	switch len(x) {
	case n:
		return slices.Clone(x)
	case 0:
		x = []int{otherwise}
	case 1:
	default:
		fail("%s %v for %d axes", name, x, n)
	}
	return slices.Repeat(x[:1], n)
}

// in shows an array with its last axes as the places of windows, and after them their elements. It has
// more elements than can be made.
func (w *windows) in(a *Array) *Array {
	v, r := *a, len(a.shape)-len(w.taps)
	v.shape, v.strides = slices.Clone(a.shape), slices.Clone(a.strides)
	for d, taps := range w.taps {
		n, step := a.shape[r+d], a.strides[r+d]
		v.shape[r+d], v.strides[r+d] = (n-w.apart[d]*(taps-1)-1)/w.step[d]+1, step*w.step[d]
		if n-w.apart[d]*(taps-1) < 1 {
			fail("no window of %v in %v", w.taps, a.shape)
		}
		v.shape, v.strides = append(v.shape, taps), append(v.strides, step*w.apart[d])
	}
	return &v
}

// framed returns the elements with the last axes spread apart, and with some of a value in front and
// after; less than none leaves elements out.
func (a *Array) framed(spread, before, after []int, value float64) *Array {
	shape, r := slices.Clone(a.shape), len(a.shape)-len(spread)
	same := true
	for d, s := range spread {
		shape[r+d] = max(0, (a.shape[r+d]-1)*s+1+before[d]+after[d])
		same = same && s == 1 && before[d] == 0 && after[d] == 0
	}
	if same {
		return a
	}
	out := filled(like(a, shape), value)
	to := out
	for d, s := range spread {
		n, from := a.shape[r+d], max(0, ceil(-before[d], s)) // of a
		at := from*s + before[d]
		n = max(0, min(n-from, ceil(shape[r+d]-at, s)))
		if n == 0 {
			return out
		}
		a, to = a.slice(r+d, from, n, 1), to.slice(r+d, at, n, s)
	}
	to.put(a)
	return out
}

// convolution is Σ weight · input over channels and taps, by products of the weights with the windows of
// the input, some windows at a time. A transposed one is that of the input with stride−1 zeros between
// its elements, with the taps in reverse order.
func convolution(c *Call) *Array {
	x, w := c.factors("input", "weight")
	n, groups := len(x.shape)-2, max(c.int("groups", 1), 1)
	if n < 1 || len(w.shape) != n+2 || x.complex || w.complex || w.shape[0]%groups != 0 {
		fail("convolution of %v by %v", x.shape, w.shape)
	}
	spread := slices.Repeat([]int{1}, n)
	g := &windows{w.shape[2:], c.perAxis("dilation", n, 1), c.perAxis("stride", n, 1)}
	before, after := c.perAxis("padding", n, 0), c.perAxis("padding", n, 0)
	if c.is("transposed") {
		w, spread, g.step = turned(w, groups), g.step, spread
		for d, more := range c.perAxis("output_padding", n, 0) {
			before[d] = g.apart[d]*(g.taps[d]-1) - before[d]
			after[d] = before[d] + more
		}
	}
	if w.shape[1]*groups != x.shape[1] {
		fail("convolution of %v by %v", x.shape, w.shape)
	}
	v := g.in(x.framed(spread, before, after, 0))
	weights := w.reshape([]int{groups, w.shape[0] / groups, size(w.shape[1:])})
	out := c.sums(slices.Concat(x.shape[:1], w.shape[:1], v.shape[2:2+n]), x, w)
	convolve(out, v, weights)
	bias := c.optional("bias")
	if bias != nil {
		bias = out.perChannel(bias)
	}
	return c.plus(out, bias)
}

// turned are weights of a transposed convolution as those of one: these have the channels of the input in
// front, by groups.
func turned(w *Array, groups int) *Array {
	shape := w.shape
	for d := 2; d < len(shape); d++ {
		w = w.flipped(d)
	}
	w = w.reshape(slices.Concat([]int{groups, shape[0] / groups}, shape[1:]))
	return w.transpose(exchanged(len(w.shape), 1, 2)).reshape(slices.Concat([]int{groups * shape[1], shape[0] / groups}, shape[2:]))
}

// lineByLine is [convolve] of groups of few filters, which would leave most of a product's panels empty: each line of
// places gets that of each tap, times its weight.
func lineByLine(out, x, weights *Array) {
	n := len(x.shape)/2 - 1
	groups, filters, channels, last := weights.shape[0], weights.shape[1], x.shape[1]/weights.shape[0], 1+n
	lines, to, taps := x.offsets(2, last), out.offsets(2, last), x.offsets(last+1, len(x.shape))
	parallel(x.shape[0]*groups, filters*size(weights.shape[2:])*size(x.shape[2:2+n]), func() func(i int) {
		line := like(out, x.shape[last:last+1])
		return func(i int) {
			batch, group := i/groups, i%groups
			w := weights.slice(0, group, 1, 1).floats64()
			for c := range channels {
				from := x.off + batch*x.strides[0] + (group*channels+c)*x.strides[1]
				for f := range filters {
					at := batch*out.strides[0] + (group*filters+f)*out.strides[1]
					for t, tap := range taps {
						by := w[(f*channels+c)*len(taps)+t]
						for k := range lines {
							if out.f != nil {
								addLine(out.f[out.off+at+to[k]:], line.f, x, from+lines[k]+tap, x.strides[last], float32(by))
							} else {
								addLine(out.d[out.off+at+to[k]:], line.d, x, from+lines[k]+tap, x.strides[last], by)
							}
						}
					}
				}
			}
		}
	})
}

// addLine adds elements of the storage that are step apart, times a number.
func addLine[T floating](dst, line []T, x *Array, at, step int, by T) {
	copyRun(x, line, at, step)
	for i, v := range line {
		dst[i] += T(by * v)
	}
}

// offsets are where the elements of some axes lie in the storage, in row-major order.
func (a *Array) offsets(from, to int) (list []int) {
	part := a.view(a.shape[from:to], a.strides[from:to], 0)
	part.runs(0, part.Len(), func(at, step, count int) {
		for i := range count {
			list = append(list, at+i*step)
		}
	})
	return list
}

// convolve adds products of weights, [groups, filters, channels · taps], with windows, [batch, channels, places…, taps…],
// to out, [batch, filters, places…].
func convolve(out, x, weights *Array) {
	if groups, filters := weights.shape[0], weights.shape[1]; groups > 1 && filters <= fewFilters {
		lineByLine(out, x, weights)
		return
	}
	n := len(x.shape)/2 - 1
	order := []int{0, 1}
	for d := range 2 * n { // taps in front of places: windows as columns
		order = append(order, 2+(n+d)%(2*n))
	}
	groups, filters, depth := weights.shape[0], weights.shape[1], weights.shape[2]
	line, channels := size(x.shape[3:2+n]), x.shape[1]/groups
	lines := min(x.shape[2], max(1, windowElements/max(depth*line, 1)))
	parts := ceil(x.shape[2], lines)
	parallel(x.shape[0]*groups*parts, filters*depth*lines*line, func() func(i int) {
		var columns, made *Array // where windows, or their products, do not lie as they are needed
		return func(i int) {
			from, k, b := i%parts*lines, i/parts%groups, i/parts/groups
			part := func(a *Array, channels int) *Array {
				return a.slice(0, b, 1, 1).slice(1, k*channels, channels, 1).slice(2, from, min(lines, x.shape[2]-from), 1)
			}
			v, to := part(x, channels).transpose(order), part(out, filters)
			width := to.Len() / filters
			if !v.isPacked() {
				if columns == nil {
					columns = like(out, []int{depth * lines * line})
				}
				lying := columns.slice(0, 0, v.Len(), 1).reshape(v.shape)
				lying.put(v)
				v = lying
			}
			product := to
			if !to.isPacked() {
				if made == nil {
					made = like(out, []int{filters * lines * line})
				}
				made.clear()
				product = made.slice(0, 0, to.Len(), 1)
			}
			multiply(product.reshape([]int{1, filters, width}), weights.slice(0, k, 1, 1), v.reshape([]int{1, depth, width}))
			if product != to {
				to.put(product.reshape(to.shape))
			}
		}
	})
}
