package tensor

import (
	"fmt"
	"slices"
)

func (t *Tensor) with(shape, strides []int, base int) *Tensor {
	v := *t
	v.shape, v.strides, v.base = shape, strides, base
	return &v
}

// Slice keeps the indices from ≤ i < to of one axis. The result is a view; the error is for an axis
// or a range that the tensor does not have.
func (t *Tensor) Slice(axis, from, to int) (*Tensor, error) {
	if axis < 0 || axis >= len(t.shape) {
		return nil, fmt.Errorf("tensor: slice: axis %d of a tensor with %d axes", axis, len(t.shape))
	}
	if from < 0 || to < from || to > t.shape[axis] {
		return nil, fmt.Errorf("tensor: slice [%d:%d] of axis %d, which has size %d", from, to, axis, t.shape[axis])
	}
	shape := clone(t.shape)
	shape[axis] = to - from
	base := t.base
	if t.Len() > 0 && to > from {
		base += from * t.strides[axis] * t.dtype.Size()
	}
	return t.with(shape, clone(t.strides), base), nil
}

// Transpose reorders the axes: axis i of the result is axis order[i] of t. Without an order the
// last two axes are exchanged. The result is a view; the error is for an order that is not one of
// the axes.
func (t *Tensor) Transpose(order ...int) (*Tensor, error) {
	n := len(t.shape)
	if len(order) == 0 {
		if n < 2 {
			return nil, fmt.Errorf("tensor: transpose: %s has fewer than two axes", t)
		}
		for i := range n {
			order = append(order, i)
		}
		order[n-1], order[n-2] = n-2, n-1
	}
	sorted := slices.Sorted(slices.Values(order))
	for i, a := range sorted {
		if len(order) != n || a != i {
			return nil, fmt.Errorf("tensor: transpose: %v is not an order of %d axes", order, n)
		}
	}
	shape, strides := make([]int, n), make([]int, n)
	for i, a := range order {
		shape[i], strides[i] = t.shape[a], t.strides[a]
	}
	return t.with(shape, strides, t.base), nil
}

// Reshape returns the same elements, in row-major order, in another shape. The result is a view if
// strides can describe it, or else a copy; the error is for a shape with another number of
// elements.
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	n, err := NumElems(shape)
	if err != nil {
		return nil, fmt.Errorf("tensor: reshape: %w", err)
	}
	if n != t.Len() {
		return nil, fmt.Errorf("tensor: reshape: %s has %d elements, %s wants %d", t, t.Len(), FormatShape(shape), n)
	}
	if n == 0 {
		return t.with(clone(shape), rowMajor(shape), t.base), nil
	}
	if strides, ok := reshapeStrides(t.shape, t.strides, shape); ok {
		return t.with(clone(shape), strides, t.base), nil
	}
	c := t.Copy()
	return c.with(clone(shape), rowMajor(shape), 0), nil
}

// reshapeStrides finds strides for a new shape over the same elements. From the left, it matches
// runs of axes with equally many elements; a run can be divided differently if its axes have no
// gaps between them. No size may be zero.
func reshapeStrides(shape, strides, want []int) ([]int, bool) {
	var oldShape, oldStrides []int
	for i, d := range shape {
		if d != 1 {
			oldShape, oldStrides = append(oldShape, d), append(oldStrides, strides[i])
		}
	}
	out := make([]int, len(want))
	i, j := 0, 0
	for j < len(want) {
		if want[j] == 1 {
			out[j] = 1
			j++
			continue
		}
		// One run: old axes i..i2 hold as many elements as new axes j..j2.
		i2, j2 := i+1, j+1
		have, need := oldShape[i], want[j]
		for have != need {
			if have < need {
				have *= oldShape[i2]
				i2++
			} else {
				need *= want[j2]
				j2++
			}
		}
		for k := i; k < i2-1; k++ {
			if oldStrides[k] != oldShape[k+1]*oldStrides[k+1] {
				return nil, false
			}
		}
		s := oldStrides[i2-1]
		for k := j2 - 1; k >= j; k-- {
			out[k] = s
			s *= want[k]
		}
		i, j = i2, j2
	}
	return out, true
}

// Broadcast repeats axes of size 1 and adds axes in front to get the wanted shape, as numpy does.
// The result is a view; the error is for a shape that does not fit.
func (t *Tensor) Broadcast(shape ...int) (*Tensor, error) {
	if _, err := NumElems(shape); err != nil {
		return nil, fmt.Errorf("tensor: broadcast: %w", err)
	}
	lead := len(shape) - len(t.shape)
	strides := make([]int, len(shape))
	for i := range shape {
		switch j := i - lead; {
		case lead < 0 || j >= 0 && t.shape[j] != shape[i] && t.shape[j] != 1:
			return nil, fmt.Errorf("tensor: broadcast: %s does not repeat to %s", t, FormatShape(shape))
		case j >= 0 && t.shape[j] == shape[i]:
			strides[i] = t.strides[j]
		}
	}
	return t.with(clone(shape), strides, t.base), nil
}

// Copy returns a contiguous little-endian tensor with a copy of the elements.
func (t *Tensor) Copy() *Tensor {
	return &Tensor{dtype: t.dtype, shape: clone(t.shape), strides: rowMajor(t.shape), data: t.copied(), place: t.place}
}

// Concat joins tensors along an axis into a copy. The error is for tensors that differ in type or
// in the size of another axis.
func Concat(axis int, parts ...*Tensor) (*Tensor, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("tensor: concat: no tensors")
	}
	first := parts[0]
	if axis < 0 || axis >= len(first.shape) {
		return nil, fmt.Errorf("tensor: concat: axis %d of a tensor with %d axes", axis, len(first.shape))
	}
	shape := clone(first.shape)
	shape[axis] = 0
	for _, p := range parts {
		same := p.dtype == first.dtype && len(p.shape) == len(shape)
		for i := 0; same && i < len(shape); i++ {
			same = i == axis || p.shape[i] == first.shape[i]
		}
		if !same {
			return nil, fmt.Errorf("tensor: concat along axis %d: %s does not fit %s", axis, p, first)
		}
		shape[axis] += p.shape[axis]
	}
	n, err := NumBytes(first.dtype, shape)
	if err != nil {
		return nil, fmt.Errorf("tensor: concat: %w", err)
	}
	outer := 1
	for _, d := range shape[:axis] {
		outer *= d
	}
	raw := make([][]byte, len(parts))
	for i, p := range parts {
		raw[i] = p.Copy().data
	}
	data := make([]byte, 0, n)
	for o := range outer {
		for _, r := range raw {
			chunk := len(r) / outer
			data = append(data, r[o*chunk:(o+1)*chunk]...)
		}
	}
	return New(first.dtype, shape, data)
}

// SelectRows copies the rows for which keep is true into a tensor of shape [kept, rowLen]. The
// error is for a keep that has not exactly one element per row.
func (t *Tensor) SelectRows(keep []bool) (*Tensor, error) {
	n, rows := t.RowLen(), 1
	for _, d := range t.shape[:max(len(t.shape)-1, 0)] {
		rows *= d
	}
	if len(t.shape) == 0 || len(keep) != rows {
		return nil, fmt.Errorf("tensor: select rows: %d flags for %s", len(keep), t)
	}
	src, lies := t.Bytes()
	if !lies {
		src = t.Copy().data
	}
	kept, w := 0, n*t.dtype.Size()
	for _, k := range keep {
		if k {
			kept++
		}
	}
	data := make([]byte, 0, kept*w)
	for i, k := range keep {
		if k {
			data = append(data, src[i*w:(i+1)*w]...)
		}
	}
	return New(t.dtype, []int{kept, n}, data)
}

// As returns the same bytes as elements of another type of the same size: scales in U8 as floats.
// The error is for a type of another size, and for packed elements.
func (t *Tensor) As(d DType) (*Tensor, error) {
	if d.Size() != t.dtype.Size() || d.Size() == 0 || t.packed != nil {
		return nil, fmt.Errorf("tensor: as: elements of %s are not those of %s", t, d)
	}
	v := *t
	v.dtype = d
	return &v, nil
}
