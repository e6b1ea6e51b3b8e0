package replay

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// lookups are the operators that take elements from places, and change none.
var lookups = family{
	"embedding":    one(func(c *Call) *Array { return c.taken(c.table("weight"), []*Array{c.tensor("indices")}) }),
	"index_select": one(func(c *Call) *Array { return c.taken(c.self(), c.atAxis(c.self(), c.tensor("index"))) }),
	"gather":       one(func(c *Call) *Array { return c.taken(c.self(), c.grid(c.self(), c.tensor("index"))) }),
	"index":        one(func(c *Call) *Array { return c.taken(c.self(), c.tensors("indices")) }),
	"masked_select": one(func(c *Call) *Array {
		shape := together(c.self(), c.tensor("mask"))
		return c.taken(c.self().broadcast(shape), []*Array{c.tensor("mask").broadcast(shape)})
	}),
	"nonzero": one(nonzero), "repeat_interleave": one(repeats),
}

// writes are the operators that put elements at places of a tensor.
var writes = family{
	"index_put": one(func(c *Call) *Array {
		how := ""
		if c.is("accumulate") {
			how = "sum"
		}
		return c.written(c.self(), c.tensors("indices"), c.tensor("values"), how, true)
	}),
	"index_copy": one(func(c *Call) *Array { return c.lined("", 1) }),
	"index_add":  one(func(c *Call) *Array { return c.lined("sum", c.float("alpha", 1)) }),
	"masked_scatter": one(func(c *Call) *Array { // the elements of source, in their order, where the mask is true
		shape := together(c.self(), c.tensor("mask"))
		mask := c.tensor("mask").broadcast(shape)
		source := c.tensor("source").reshape([]int{-1}).slice(0, 0, trueAt(mask)[0].Len(), 1)
		return c.written(c.self().broadcast(shape), []*Array{mask}, source, "", true)
	}),
	"scatter": one(scatter), "scatter_add": one(scatter), "scatter_reduce": one(scatter),
}

// at is an index along an axis of n elements, which may be counted from the end.
func at(i float64, n int) int {
	k := int(i)
	if k < 0 {
		k += n
	}
	if k < 0 || k >= n {
		fail("index %v of %d", i, n)
	}
	return k
}

// atAxis are the indices of elements of axis dim.
func (c *Call) atAxis(a, index *Array) []*Array {
	return append(make([]*Array, axis(c.int("dim", 0), len(a.shape))), index)
}

// grid are the indices along all axes of what an index of the same rank points at along axis dim: along the
// others it points at its own place.
func (c *Call) grid(a, index *Array) (indices []*Array) {
	if len(index.shape) != len(a.shape) && len(a.shape) > 0 {
		fail("an index of %v for %v", index.shape, a.shape)
	}
	for d, n := range index.shape {
		if d == axis(c.int("dim", 0), len(a.shape)) {
			indices = append(indices, index)
			continue
		}
		indices = append(indices, counted(n).onAxis(d, len(a.shape)))
	}
	return indices
}

// counted returns 0, 1, 2, …
func counted(n int) *Array {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	return arrayOf([]int{n}, x)
}

// places are what indices point at: arrays of the axes that are whole, one for each element of the indices.
type places struct {
	row   Array // such an array; its offset is that of the array as a whole
	at    []int // where each begins after that
	shape []int // of the indices, broadcast to one another
	order []int // of the axes [shape…, row…] in the result
}

// pointed finds them. A nil leaves an axis whole, and a mask of bools stands for the places at which it is
// true. Whole axes between others come after all that is indexed, else where they were.
func pointed(a *Array, indices []*Array) *places {
	var axes []int
	var by []*Array
	d := 0
	for _, t := range indices {
		parts := []*Array{t}
		if t != nil && t.dtype == tensor.Bool {
			if d+len(t.shape) > len(a.shape) || !slices.Equal(a.shape[d:d+len(t.shape)], t.shape) {
				fail("a mask of %v for %v", t.shape, a.shape)
			}
			parts = trueAt(t)
		}
		for _, p := range parts {
			if p != nil {
				axes, by = append(axes, d), append(by, p)
			}
			d++
		}
	}
	n := len(axes)
	if n == 0 || d > len(a.shape) {
		fail("%d indices for %v", d, a.shape)
	}
	p := &places{shape: together(by...), row: *a.transpose(lastly(len(a.shape), axes...))}
	p.at = make([]int, size(p.shape))
	for k, t := range by {
		for i, v := range t.broadcast(p.shape).floats64() {
			p.at[i] += at(v, a.shape[axes[k]]) * a.strides[axes[k]]
		}
	}
	rest := len(a.shape) - n
	p.row.shape, p.row.strides = p.row.shape[:rest], p.row.strides[:rest]
	first, m := 0, len(p.shape)
	if axes[n-1]-axes[0] == n-1 {
		first = axes[0]
	}
	order := lastly(m + rest)
	p.order = slices.Concat(order[m:m+first], order[:m], order[m+first:])
	return p
}

// taken returns the elements at indices.
func (c *Call) taken(a *Array, indices []*Array) *Array {
	if len(a.shape) == 0 {
		return a.broadcast(c.shape(0))
	}
	p := pointed(a, indices)
	out := like(a, slices.Concat(p.shape, p.row.shape))
	if out.f != nil {
		gather(out.f, p)
	} else {
		gather(out.d, p)
	}
	return out.transpose(p.order)
}

// gather copies the row of each place.
func gather[T floating](dst []T, p *places) {
	type run struct{ at, step, count int }
	var runs []run // of a row, which lie alike in all
	p.row.runs(0, p.row.Len(), func(at, step, count int) { runs = append(runs, run{at, step, count}) })
	for _, k := range p.at {
		for _, r := range runs {
			copyRun(&p.row, dst[:r.count], k+r.at, r.step)
			dst = dst[r.count:]
		}
	}
}

// written makes the first result of an array in which values are put at indices. Several that fall together
// are reduced, with what was there before if that is included.
func (c *Call) written(a *Array, indices []*Array, values *Array, how string, include bool) *Array {
	x := a.Floats()
	p := pointed(arrayOf(a.shape, x), indices)
	shape, order := slices.Concat(p.shape, p.row.shape), make([]int, len(p.order))
	for i, k := range p.order {
		order[i] = shape[k]
	}
	values = values.broadcast(order).transpose(inverse(p.order))
	var counts []float64
	if how == "mean" || !include {
		counts = slices.Repeat([]float64{b2f(include)}, len(x))
	}
	n, row := p.row.Len(), p.row
	line := make([]float64, n)
	for i, k := range p.at {
		read(values, line, i*n)
		row.off = p.row.off + k
		j := 0
		row.runs(0, n, func(at, step, count int) {
			for end := j + count; j < end; j, at = j+1, at+step {
				first := how == "" || counts != nil && counts[at] == 0
				if x[at] = reduced(how, first, x[at], line[j]); counts != nil {
					counts[at]++
				}
			}
		})
	}
	if how == "mean" {
		for i, n := range counts {
			if x[i] /= max(n, 1); !c.value(0).DType.IsFloat() {
				x[i] = math.Floor(x[i])
			}
		}
	}
	return c.result(0, c.shape(0), x)
}

// reduced is v, or so with v.
func reduced(how string, first bool, so, v float64) float64 {
	switch {
	case first:
		return v
	case how == "add" || how == "sum" || how == "mean":
		return so + v
	case how == "multiply" || how == "prod":
		return so * v
	case how == "amax":
		return max(so, v)
	case how == "amin":
		return min(so, v)
	}
	fail("reduce by %q", how)
	return 0
}

// lined puts slices of source at the indices of an axis.
func (c *Call) lined(how string, alpha float64) *Array {
	a, source := c.self(), c.tensor("source")
	if len(a.shape) == 0 {
		a, source = a.with(0), source.reshape([]int{1})
	}
	x := converted(source, func(v float64) float64 { return alpha * v })
	return c.written(a, c.atAxis(a, c.tensor("index")), arrayOf(source.shape, x), how, true)
}

// scatter puts elements of a source, or a number, where an index points along an axis.
func scatter(c *Call) *Array {
	a, index, source := c.self(), c.tensor("index"), c.maybe("src")
	if len(a.shape) == 0 {
		a, index = a.with(0), index.reshape([]int{-1})
	}
	if source == nil {
		source = c.operand("value")
	}
	for d, n := range index.shape {
		if len(source.shape) > 0 {
			source = source.slice(d, 0, n, 1)
		}
	}
	how := c.text("reduce")
	if key(c.op.Full) == "scatter_add" {
		how = "sum"
	}
	return c.written(a, c.grid(a, index), source, how, get(c, "include_self", true))
}

// trueAt returns the index along each axis of what is not zero.
func trueAt(mask *Array) []*Array {
	steps := packed(mask.shape)
	lists := make([][]float64, len(mask.shape))
	for i, v := range mask.floats64() {
		for d := range lists {
			if v != 0 {
				lists[d] = append(lists[d], float64(i/steps[d]%mask.shape[d]))
			}
		}
	}
	out := make([]*Array, len(lists))
	for d, x := range lists {
		out[d] = arrayOf([]int{len(x)}, append(x, 0)[:len(x)])
	}
	return out
}

// nonzero depends on data: a run in which other numbers are zero has another shape.
func nonzero(c *Call) *Array {
	lists := trueAt(c.self())
	if len(lists) == 0 {
		fail("nonzero of a scalar")
	}
	for d, list := range lists {
		lists[d] = list.with(1)
	}
	return c.joined(lists, 1)
}

// repeats lists each index as often as it is told.
func repeats(c *Call) *Array {
	var out []float64
	for i, n := range c.tensor("repeats").floats64() {
		if n > maxElements || len(out) > maxElements {
			fail("more than %d elements", maxElements)
		}
		out = append(out, slices.Repeat([]float64{float64(i)}, int(max(n, 0)))...)
	}
	return c.result(0, []int{len(out)}, out)
}
