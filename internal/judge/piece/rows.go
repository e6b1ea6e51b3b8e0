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
	shape, x := a.Shape(), a.Floats()
	width := 1
	if len(shape) > 0 {
		width = shape[len(shape)-1]
	}
	if r.Axis == len(shape)-1 && r.Axis > 0 {
		x, shape = lastFirst(x, shape), slices.Concat(shape[:1], shape[r.Axis:], shape[1:r.Axis])
		width = shape[len(shape)-1]
		r = &Rows{Axis: 1, Batch: r.Batch, Length: r.Length, Own: r.Own}
		if len(shape) == 2 {
			width = 1
		}
	}
	all := numbers{x, width}
	var own []float64
	var keys []int
	for i := range all.rows() {
		if k := r.key(i*width, shape); r.Own[k] {
			own, keys = append(own, all.row(i)...), append(keys, k)
		}
	}
	return numbers{own, width}, keys
}

// key returns the row of Rows that an element belongs to, by its place in row-major order.
func (r *Rows) key(at int, shape []int) int {
	if r.Axis == 0 { // [B·L·m, …]
		n := 1
		for _, d := range shape[1:] {
			n *= d
		}
		return at / n * r.Batch * r.Length / shape[0]
	}
	inner := 1
	for _, d := range shape[r.Axis+1:] {
		inner *= d
	}
	l := at / inner % shape[r.Axis]
	total := inner
	for _, d := range shape[1 : r.Axis+1] {
		total *= d
	}
	b := 0
	if shape[0] == r.Batch {
		b = at / total
	}
	return b*r.Length + l
}

// lastFirst moves the last axis of [B, …, L] after the first: [B, L, …].
func lastFirst(x []float64, shape []int) []float64 {
	l := shape[len(shape)-1]
	mid := 1
	for _, d := range shape[1 : len(shape)-1] {
		mid *= d
	}
	out := make([]float64, len(x))
	for b := range shape[0] {
		block := x[b*mid*l : (b+1)*mid*l]
		to := out[b*mid*l : (b+1)*mid*l]
		for m := range mid {
			for i := range l {
				to[i*mid+m] = block[m*l+i]
			}
		}
	}
	return out
}
