package piece

import (
	"slices"

	"github.com/goparity/goparity/internal/replay"
)

// arrange returns the elements of a tensor that are compared, in rows along its last axis, and which
// row of Rows, or of Lines, each of them belongs to; nil keys where the tensor is whole. Rows that lie along
// the last axis are brought in front of the others first.
func (r *Record) arrange(a *replay.Array) (numbers, []int) {
	if r.Rows != nil {
		return r.Rows.arrange(a)
	}
	all := lined(a)
	if r.Lines == nil || len(r.Lines) != all.rows() {
		return all, nil
	}
	var own []float64
	var keys []int
	for i, is := range r.Lines {
		if is {
			own, keys = append(own, all.row(i)...), append(keys, i)
		}
	}
	return numbers{own, all.width}, keys
}

// lined are all elements of a tensor, in rows along its last axis.
func lined(a *replay.Array) numbers {
	all := numbers{a.Floats(), 1}
	if shape := a.Shape(); len(shape) > 0 {
		all.width = shape[len(shape)-1]
	}
	return all
}

func (r *Rows) arrange(a *replay.Array) (numbers, []int) {
	all, shape, axis := lined(a), a.Shape(), r.Axis
	if axis == len(shape)-1 && axis > 0 {
		if all = (numbers{lastFirst(all.x, shape), 1}); axis > 1 {
			all.width = shape[axis-1]
		}
		shape, axis = slices.Concat(shape[:1], shape[axis:], shape[1:axis]), 1
	}
	var own []float64
	var keys []int
	for i := range all.rows() {
		if k := r.key(i*all.width, shape, axis); r.Own[k] {
			own, keys = append(own, all.row(i)...), append(keys, k)
		}
	}
	return numbers{own, all.width}, keys
}

// key returns the row of Rows that an element belongs to, by its place in row-major order.
func (r *Rows) key(at int, shape []int, axis int) int {
	if axis == 0 { // [B·L·m, …]
		return at / product(shape[1:]) * r.Batch * r.Length / shape[0]
	}
	row := at / product(shape[axis+1:]) % shape[axis]
	if shape[0] == r.Batch {
		row += at / product(shape[1:]) * r.Length
	}
	return row
}

func product(sizes []int) int {
	n := 1
	for _, d := range sizes {
		n *= d
	}
	return n
}

// lastFirst moves the last axis of [B, …, L] after the first: [B, L, …].
func lastFirst(x []float64, shape []int) []float64 {
	l := shape[len(shape)-1]
	mid := product(shape[1 : len(shape)-1])
	out := make([]float64, len(x))
	for i, v := range x {
		b, m := i/(mid*l), i/l%mid
		out[(b*l+i%l)*mid+m] = v
	}
	return out
}
