package replay

import (
	"slices"

	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

func packed(shape []int) []int {
	s, n := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// isPacked reports whether the elements lie in row-major order without gaps.
func (a *Array) isPacked() bool {
	n := 1
	for i := len(a.shape) - 1; i >= 0; i-- {
		if a.shape[i] != 1 && a.strides[i] != n {
			return a.Len() == 0
		}
		n *= a.shape[i]
	}
	return true
}

// view shows the same storage otherwise, with no more elements than a result may have.
func (a *Array) view(shape, strides []int, off int) *Array {
	if n, err := tensor.NumElems(shape); err != nil || n > max(maxElements, a.Len()) {
		fail("%v has more than %d elements", shape, maxElements)
	}
	return &Array{dtype: a.dtype, shape: shape, strides: strides, off: off, complex: a.complex, f: a.f, d: a.d, h: a.h, half: a.half}
}

// shares reports whether two arrays are views of one storage.
func (a *Array) shares(b *Array) bool {
	return len(a.f) > 0 && len(b.f) > 0 && &a.f[0] == &b.f[0] || len(a.d) > 0 && len(b.d) > 0 && &a.d[0] == &b.d[0] ||
		len(a.h) > 0 && len(b.h) > 0 && &a.h[0] == &b.h[0]
}

// pack returns the elements in row-major order, without a copy where they lie so.
func (a *Array) pack() *Array {
	if a.isPacked() {
		return a
	}
	out := like(a, a.shape)
	out.put(a)
	return out
}

// reshape gives another shape of as many elements; one axis may be −1. It is a view of a packed array,
// else a copy.
func (a *Array) reshape(shape []int) *Array {
	shape = slices.Clone(shape)
	if i := slices.Index(shape, -1); i >= 0 {
		shape[i] = 1
		if n := size(shape); n > 0 {
			shape[i] = a.Len() / n
		}
	}
	if size(shape) != a.Len() {
		fail("%v as %v", a.shape, shape)
	}
	if a.complex {
		return a.real().reshape(append(shape, 2)).asComplex()
	}
	p := a.pack()
	return p.view(shape, packed(shape), p.off)
}

// broadcast repeats axes of one element and adds axes in front; −1 leaves an axis as it is.
func (a *Array) broadcast(shape []int) *Array {
	if slices.Equal(a.shape, shape) {
		return a
	}
	shape, strides := slices.Clone(shape), make([]int, len(shape))
	more := len(shape) - len(a.shape)
	if more < 0 {
		fail("%v as %v", a.shape, shape)
	}
	for i, n := range a.shape {
		switch j := i + more; {
		case shape[j] == n || shape[j] == -1:
			shape[j], strides[j] = n, a.strides[i]
		case n != 1:
			fail("%v as %v", a.shape, shape)
		}
	}
	return a.view(shape, strides, a.off)
}

// together returns the shape of operands that are broadcast to one another.
func together(arrays ...*Array) (shape []int) {
	for _, a := range arrays {
		if slices.Equal(shape, a.shape) {
			continue
		}
		if len(shape) < len(a.shape) {
			shape = append(slices.Repeat([]int{1}, len(a.shape)-len(shape)), shape...)
		}
		for i, n := range a.shape {
			switch j := i + len(shape) - len(a.shape); {
			case shape[j] == 1:
				shape[j] = n
			case n != 1 && n != shape[j]:
				fail("%v and %v", a.shape, shape)
			}
		}
	}
	return shape
}

// axis returns an axis that may be counted from the end. A scalar has one.
func axis(d, rank int) int {
	n := max(rank, 1)
	if d < -n || d >= n {
		fail("axis %d of %d", d, rank)
	}
	if d < 0 {
		d += n
	}
	return d
}

// onAxis shows numbers along one axis of several.
func (a *Array) onAxis(d, rank int) *Array {
	shape := slices.Repeat([]int{1}, rank)
	shape[d] = a.Len()
	return a.reshape(shape)
}

// transpose reorders the axes: axis i of the result is axis order[i].
func (a *Array) transpose(order []int) *Array {
	if len(order) != len(a.shape) {
		fail("order %v of %v", order, a.shape)
	}
	shape, strides, seen := make([]int, len(order)), make([]int, len(order)), make([]bool, len(order))
	for i, d := range order {
		d = axis(d, len(a.shape))
		if seen[d] {
			fail("order %v of %v", order, a.shape)
		}
		seen[d], shape[i], strides[i] = true, a.shape[d], a.strides[d]
	}
	return a.view(shape, strides, a.off)
}

// exchanged returns the order of n axes with two of them exchanged.
func exchanged(n, a, b int) []int {
	order := vec.Sequence(n)
	if a, b = axis(a, n), axis(b, n); n > 0 {
		order[a], order[b] = b, a
	}
	return order
}

// slice takes n elements of an axis, from one on, by steps.
func (a *Array) slice(d, from, n, step int) *Array {
	d = a.has(d)
	if from < 0 || n < 0 || from > a.shape[d] || n > 0 && (step < 1 || from+(n-1)*step >= a.shape[d]) {
		fail("[%d:+%d:%d] of axis %d of %v", from, n, step, d, a.shape)
	}
	shape, strides := slices.Clone(a.shape), slices.Clone(a.strides)
	shape[d], strides[d] = n, strides[d]*step
	return a.view(shape, strides, a.off+from*a.strides[d])
}

// flipped reverses an axis.
func (a *Array) flipped(d int) *Array {
	d = a.has(d)
	strides := slices.Clone(a.strides)
	strides[d] = -strides[d]
	return a.view(a.shape, strides, a.off+max(0, a.shape[d]-1)*a.strides[d])
}

// has returns an axis that is there: a scalar has none.
func (a *Array) has(d int) int {
	if len(a.shape) == 0 {
		fail("axis %d of a scalar", d)
	}
	return axis(d, len(a.shape))
}

// without leaves an axis out, of which the first element stays.
func (a *Array) without(d int) *Array {
	return a.view(slices.Delete(slices.Clone(a.shape), d, d+1), slices.Delete(slices.Clone(a.strides), d, d+1), a.off)
}

// with puts in an axis of one element.
func (a *Array) with(d int) *Array {
	d = axis(d, len(a.shape)+1)
	return a.view(slices.Insert(slices.Clone(a.shape), d, 1), slices.Insert(slices.Clone(a.strides), d, 0), a.off)
}

// views are the operators that show the numbers of a tensor otherwise.
var views = map[string]func(c *Call, a *Array) *Array{
	"view": func(c *Call, a *Array) *Array { return a.reshape(c.shape(0)) },
	"transpose": func(c *Call, a *Array) *Array {
		return a.transpose(exchanged(len(a.shape), c.int("dim0", 0), c.int("dim1", 1)))
	},
	"permute":   func(c *Call, a *Array) *Array { return a.transpose(c.ints("dims")) },
	"unsqueeze": func(c *Call, a *Array) *Array { return a.with(c.int("dim", 0)) },
	"expand":    func(c *Call, a *Array) *Array { return a.broadcast(c.ints("size")) },
	"squeeze":   squeezed, "select": selected, "slice": sliced, "diagonal": diagonal, "as_strided": asStrided, "unfold": unfolded,
}

// shapes are the operators that only move numbers.
var shapes = func() family {
	f := family{
		"unbind": unbind, "split_with_sizes": split,
		"cat":   one(func(c *Call) *Array { return c.joined(c.tensors("tensors"), c.int("dim", 0)) }),
		"stack": one(stack), "repeat": one(repeat), "roll": one(roll), "constant_pad_nd": one(pad),
		"flip": one(func(c *Call) *Array {
			a := c.self()
			for _, d := range c.ints("dims") {
				a = a.flipped(d)
			}
			return a
		}),
		"tril": triangle(func(above int) bool { return above <= 0 }), "triu": triangle(func(above int) bool { return above >= 0 }),
	}
	for name, view := range views {
		f[name] = one(func(c *Call) *Array {
			if c.text("dtype") != "" {
				fail("the same bits as another type")
			}
			return view(c, c.self())
		})
	}
	for _, name := range []string{"slice", "select", "diagonal", "as_strided"} { // src in the place of what a view of self shows
		f[name+"_scatter"] = one(func(c *Call) *Array {
			out := c.make()
			out.put(c.self())
			to := views[name](c, out)
			to.put(c.tensor("src").broadcast(to.shape))
			return out
		})
	}
	for _, d := range []string{"1d", "2d", "3d"} {
		f["upsample_nearest"+d] = one(nearest)
	}
	return f
}()

func squeezed(c *Call, a *Array) *Array {
	for _, d := range slices.Backward(c.dims(len(a.shape))) {
		if a.shape[d] == 1 {
			a = a.without(d)
		}
	}
	return a
}

func selected(c *Call, a *Array) *Array {
	d := a.has(c.int("dim", 0))
	return a.slice(d, at(float64(c.int("index", 0)), a.shape[d]), 1, 1).without(d)
}

func sliced(c *Call, a *Array) *Array {
	d := a.has(c.int("dim", 0))
	n, step := a.shape[d], c.int("step", 1)
	bound := func(i int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	from, to := bound(c.int("start", 0)), bound(c.int("end", n))
	if step < 1 {
		fail("step %d", step)
	}
	return a.slice(d, from, ceil(max(0, to-from), step), step)
}

// diagonal puts what lies on a diagonal of two axes last.
func diagonal(c *Call, a *Array) *Array {
	k := c.int("offset", 0)
	p, q := a.has(c.int("dim1", 0)), a.has(c.int("dim2", 1))
	a = a.transpose(lastly(len(a.shape), p, q))
	r := len(a.shape) - 2
	down, right := max(-k, 0), max(k, 0)
	n := max(0, min(a.shape[r]-down, a.shape[r+1]-right))
	if n == 0 {
		down, right = 0, 0
	}
	a = a.slice(r, down, n, 1).slice(r+1, right, n, 1)
	return a.view(a.shape[:r+1], append(slices.Clone(a.strides[:r]), a.strides[r]+a.strides[r+1]), a.off)
}

// asStrided takes strides as those of a base in row-major order.
func asStrided(c *Call, a *Array) *Array {
	shape, strides, off := c.ints("size"), c.ints("stride"), c.int("storage_offset", 0)
	a = a.pack()
	if len(shape) != len(strides) {
		fail("%d strides of %d axes", len(strides), len(shape))
	}
	last := off
	for i, n := range shape {
		if strides[i] < 0 || off < 0 {
			fail("strides %v from %d", strides, off)
		}
		last += max(n-1, 0) * strides[i]
	}
	if last >= a.Len() && size(shape) > 0 {
		fail("strides %v of %v", strides, a.shape)
	}
	return a.view(slices.Clone(shape), slices.Clone(strides), a.off+off)
}

// unfolded puts windows of an axis last.
func unfolded(c *Call, a *Array) *Array {
	n, step := c.int("size", 1), c.int("step", 1)
	d := a.has(c.int("dimension", 0))
	if n > a.shape[d] || n < 0 || step < 1 {
		fail("windows of %d in %v", n, a.shape)
	}
	shape, strides := append(slices.Clone(a.shape), n), append(slices.Clone(a.strides), a.strides[d])
	shape[d], strides[d] = (a.shape[d]-n)/step+1, a.strides[d]*step
	return a.view(shape, strides, a.off)
}

func unbind(c *Call) (out []*Array) {
	a := c.self()
	d := a.has(c.int("dim", 0))
	for i := range min(a.shape[d], len(c.op.Out)) {
		out = append(out, a.slice(d, i, 1, 1).without(d))
	}
	return out
}

func split(c *Call) (out []*Array) {
	at := 0
	for _, n := range c.ints("split_sizes") {
		out = append(out, c.self().slice(c.int("dim", 0), at, n, 1))
		at += n
	}
	return out
}

func stack(c *Call) *Array {
	parts := c.tensors("tensors")
	for i, p := range parts {
		parts[i] = p.with(c.int("dim", 0))
	}
	return c.joined(parts, c.int("dim", 0))
}

// joined makes the first result of parts next to one another along an axis. Those of shape [0] count for
// nothing.
func (c *Call) joined(parts []*Array, d int) *Array {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *Array) bool { return len(p.shape) == 1 && p.shape[0] == 0 })
	if len(parts) == 0 {
		return c.make()
	}
	d = parts[0].has(d)
	shape, at := slices.Clone(parts[0].shape), 0
	for _, p := range parts[1:] {
		if len(p.shape) != len(shape) {
			fail("%v beside %v", p.shape, shape)
		}
		shape[d] += p.shape[d]
	}
	out := c.of(0, shape)
	for _, p := range parts {
		out.slice(d, at, p.shape[d], 1).put(p)
		at += p.shape[d]
	}
	return out
}

func repeat(c *Call) *Array {
	a, shape, tiled := c.self(), []int{}, []int{}
	times := c.ints("repeats")
	for len(a.shape) < len(times) {
		a = a.with(0)
	}
	for d, n := range a.shape { // [n] as [1, n], repeated as [times, n]
		a = a.with(2 * d)
		shape, tiled = append(shape, times[d]*n), append(tiled, times[d], n)
	}
	return a.broadcast(tiled).reshape(shape)
}

// moved makes an axis of n elements of those that are told.
func (a *Array) moved(d, n int, from func(i int) int) *Array {
	d = a.has(d)
	shape := slices.Clone(a.shape)
	shape[d] = n
	out := like(a, shape)
	for i := range n {
		out.slice(d, i, 1, 1).put(a.slice(d, from(i), 1, 1))
	}
	return out
}

func roll(c *Call) *Array {
	a, dims := c.self(), c.ints("dims")
	if len(dims) == 0 { // of all elements in their order
		a, dims = a.reshape([]int{-1}), []int{0}
	}
	for i, shift := range c.ints("shifts") {
		n := a.shape[a.has(dims[i])]
		a = a.moved(dims[i], n, func(j int) int { return ((j-shift)%n + n) % n })
	}
	return a.reshape(c.shape(0))
}

// pad adds a number, or cuts where there is less than none.
func pad(c *Call) *Array {
	a, n := c.self(), c.ints("pad")
	var before, after []int
	for i := len(n) - 2; i >= 0; i -= 2 {
		before, after = append(before, n[i]), append(after, n[i+1])
	}
	return a.framed(slices.Repeat([]int{1}, len(before)), before, after, c.float("value", 0))
}

// nearest makes the axes after the first two of the elements that are next before.
func nearest(c *Call) *Array {
	a, shape := c.self(), c.shape(0)
	if len(a.shape) != len(shape) || len(shape) < 3 || len(shape) > 5 {
		fail("%v as %v", a.shape, shape)
	}
	names := []string{"scales_d", "scales_h", "scales_w"}[5-len(shape):]
	if len(shape) == 3 {
		names = []string{"scales"}
	}
	for i, name := range names {
		d := 2 + i
		n, by := a.shape[d], float64(a.shape[d])/float64(shape[d])
		if given := c.float(name, 0); given > 0 {
			by = 1 / given
		}
		a = a.moved(d, shape[d], func(j int) int { return min(int(float32(j)*float32(by)), n-1) })
	}
	return a
}

// triangle is the kernel of what keeps elements of each matrix by how far they are above a diagonal.
func triangle(keep func(above int) bool) kernel {
	return one(func(c *Call) *Array {
		a, k := c.self(), c.int("diagonal", 0)
		if len(a.shape) < 2 {
			fail("a triangle of %v", a.shape)
		}
		rows, columns := counted(a.shape[len(a.shape)-2]).with(1), counted(a.shape[len(a.shape)-1])
		return c.eachOf(func(out []float64, x [][]float64) {
			for i, v := range x[0] {
				if out[i] = 0; keep(int(x[1][i]-x[2][i]) - k) {
					out[i] = v
				}
			}
		}, []*Array{a, columns, rows})
	})
}
