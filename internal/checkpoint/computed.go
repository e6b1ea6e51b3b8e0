package checkpoint

import "github.com/goparity/goparity/tensor"

// Map returns a tensor of a type of 16 or 32 bits and of a shape with as many elements, which f calculates
// from those of t, from element from on, whenever they are read.
func Map(t *tensor.Tensor, d tensor.DType, shape []int, f func(values []float32, from int)) *tensor.Tensor {
	return computed(t, d, shape, tensor.Packing{Unpack: func(dst []float32, _ []byte, from int) {
		if t.DType() == tensor.F64 {
			wide := make([]float64, len(dst))
			t.Float64s(wide, from)
			for i, v := range wide {
				dst[i] = float32(v)
			}
		} else {
			t.Float32s(dst, from)
		}
		f(dst, from)
	}})
}

// Rows returns a tensor whose row i, along the first axis, is row order(i) of t. If t is quantised, so is it.
func Rows(t *tensor.Tensor, order func(row int) int) *tensor.Tensor {
	width := t.Len() / max(t.Shape()[0], 1)
	rows := func(from, n int, f func(at, done, n int)) { // for parts of rows, with where they are in t
		for done := 0; done < n; {
			row, column := (from+done)/width, (from+done)%width
			k := min(n-done, width-column)
			f(order(row)*width+column, done, k)
			done += k
		}
	}
	packing := tensor.Packing{Name: t.Packing(), Unpack: func(dst []float32, _ []byte, from int) {
		rows(from, len(dst), func(at, done, n int) { t.Float32s(dst[done:done+n], at) })
	}}
	if one := make([]float32, 1); t.Len() > 0 {
		if g := t.Grid(one, one, 0); g != nil {
			grid := *g
			grid.Ends = func(low, high []float32, _ []byte, from int) {
				rows(from, len(low), func(at, done, n int) { t.Grid(low[done:done+n], high[done:done+n], at) })
			}
			packing.Grid = &grid
		}
	}
	return computed(t, tensor.F32, t.Shape(), packing)
}

func computed(t *tensor.Tensor, d tensor.DType, shape []int, packing tensor.Packing) *tensor.Tensor {
	out, err := tensor.FromSpec(tensor.Spec{DType: d, Shape: shape, Place: t.Place(), Packing: &packing})
	if err != nil {
		panic(err) // the shape is one that t has
	}
	return out
}
