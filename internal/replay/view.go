package replay

import (
	"slices"

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
	if d < 0 {
		d += max(rank, 1)
	}
	if d < 0 || d >= max(rank, 1) {
		fail("axis %d of %d", d, rank)
	}
	return d
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
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
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
