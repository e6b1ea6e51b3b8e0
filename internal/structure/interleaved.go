package structure

import (
	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// Interleaved returns the width of the heads within which the halves are interleaved on one side:
// 0 1 2 3 4 5 6 7 is 0 4 1 5 2 6 3 7 there. It is 0 if that does not explain the difference up to a
// floor. Rows are along the last axis, which is cut into heads of an even width of 4 or more.
func Interleaved(golden, actual *tensor.Tensor, floor compare.Limits) int {
	shape, w := golden.Shape(), golden.RowLen()
	if len(shape) == 0 || w == 0 || !golden.DType().IsFloat() || !actual.DType().IsFloat() {
		return 0
	}
	for d := 4; d <= w; d += 2 {
		if w%d != 0 {
			continue
		}
		for _, cut := range [][]int{{2, d / 2}, {d / 2, 2}} {
			g, err := golden.Reshape(golden.Len()/w, w/d, cut[0], cut[1])
			if err == nil {
				g, err = g.Transpose()
			}
			if err == nil {
				g, err = g.Reshape(shape...)
			}
			if err != nil {
				return 0
			}
			if r, err := compare.Tensors(g, actual, compare.Tolerance{}); err == nil && r.Agrees(floor) {
				return d
			}
		}
	}
	return 0
}
