package quant

import (
	"fmt"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// FP4 returns floats of 4 bits (E2M1) times the scale of their group, [… in]. weight has their
// bytes, the low nibble first; scales are [… in/group], floats or E8M0. global is a number for all
// of them: each scale is multiplied by it, or divided if divide is true; nil for none. The result
// is float32: the scale is rounded, then the product (OCP MX 1.0; NVFP4).
func FP4(weight, scales, global *tensor.Tensor, divide bool, group int) (*tensor.Tensor, error) {
	types := []tensor.DType{tensor.U8, tensor.I8, tensor.U32, tensor.I32}
	kinds := []tensor.DType{tensor.F8E8M0FNU, tensor.F8E4M3FN, tensor.F32, tensor.F16, tensor.BF16}
	if err := check(part{"weight", weight, types, nil}, part{"scales", scales, kinds, nil}); err != nil {
		return nil, err
	}
	if len(weight.Shape()) == 0 || len(scales.Shape()) == 0 || group <= 0 || group%2 != 0 {
		return nil, fmt.Errorf("weight %s and scales %s in groups of %d", weight, scales, group)
	}
	factor := float32(1)
	if global != nil {
		if err := check(part{"the global scale", global, scaleTypes, nil}); err != nil {
			return nil, err
		}
		if global.Len() != 1 {
			return nil, fmt.Errorf("the global scale has shape %s, want one number", tensor.FormatShape(global.Shape()))
		}
		factor = float32(global.At(0))
	}
	groups, width := scales.RowLen(), weight.RowLen()*weight.DType().Size()
	in := groups * group
	if 2*width != in || weight.Len()/max(weight.RowLen(), 1) != scales.Len()/max(groups, 1) {
		return nil, fmt.Errorf("weight %s has rows of %d codes, scales %s in groups of %d are for %d", weight, 2*width, scales,
			group, in)
	}
	row := func(dst []float32, r, from, force int) {
		codes := bytesOf(weight)[r*width : (r+1)*width]
		first := from / group
		n := (from+len(dst)-1)/group - first + 1
		for i, s := range floats(scales, r*groups+first, n) {
			switch {
			case divide:
				s /= factor
			case global != nil:
				s *= factor
			}
			var table [16]float32
			for q, v := range smallfloat.E2M1 {
				table[q] = v * s
			}
			k := min(len(dst), (first+i+1)*group-from)
			if force != asStored {
				fill(dst[:k], table[force])
			} else if from%2 == 0 && k%2 == 0 {
				chosen(dst[:k], codes[from/2:], &table)
			} else {
				for j := range dst[:k] {
					dst[j] = table[code(codes, 4*(from+j), 4)]
				}
			}
			dst, from = dst[k:], from+k
		}
	}
	name := "mxfp4"
	if scales.DType() != tensor.F8E8M0FNU {
		name = "nvfp4"
	}
	return rows{in, row, 15, 7, e2m1[:], scales.DType().Epsilon(), nil}.
		view(name, tensor.F32, weight, last(weight.Shape(), in)...)
}
