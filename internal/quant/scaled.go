package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// Scaled returns numbers of 8 bits times their scales, (q − z)·s: one for the whole tensor, one for
// each index of some axes (size 1: all indices of an axis share it), or one for each block of some
// neighbours along axes. A scale of one axis is that of the first axis. block are the sizes of
// blocks along the last axes if they are known. zero is nil, or has the shape of scale. The result
// is float32, each number rounded once.
func Scaled(weight, scale, zero *tensor.Tensor, block []int) (*tensor.Tensor, error) {
	one := []tensor.DType{tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2, tensor.F8E5M2FNUZ, tensor.I8, tensor.U8}
	scales := append(slices.Clone(scaleTypes), tensor.F8E8M0FNU, tensor.F8E4M3FN)
	if err := check(part{"weight", weight, one, nil}, part{"the scale", scale, scales, nil}); err != nil {
		return nil, err
	}
	if zero != nil {
		types := []tensor.DType{tensor.I8, tensor.U8, tensor.F32, tensor.F16, tensor.BF16, tensor.F8E4M3FN}
		if err := check(part{"the zero point", zero, types, scale.Shape()}); err != nil {
			return nil, err
		}
	}
	shape := weight.Shape()
	if len(shape) == 0 {
		return nil, fmt.Errorf("weight is a single number")
	}
	each, err := blocksOf(shape, scale.Shape(), block)
	if err != nil {
		return nil, err
	}
	axis, strides, n := len(shape)-1, make([]int, len(shape)), 1
	for a := axis; a >= 0; a-- {
		strides[a] = n
		n *= (shape[a] + each[a] - 1) / max(each[a], 1)
	}
	perRow := func(t *tensor.Tensor) func(r int) []float32 {
		return func(r int) []float32 {
			first := 0
			for a := axis - 1; a >= 0; a-- {
				first += r % shape[a] / each[a] * strides[a]
				r /= shape[a]
			}
			return floats(t, first, (shape[axis]+each[axis]-1)/each[axis])
		}
	}
	all, err := tensor.New(weight.DType(), []int{256}, everyCode[:])
	if err != nil {
		return nil, err
	}
	g := &grouped{name: fmt.Sprintf("%s×%s%s", weight.DType().Short(), scale.DType().Short(), tensor.FormatShape(scale.Shape())),
		weight: weight, dtype: tensor.F32, shape: shape, size: each[axis], values: floats(all, 0, 256),
		codes: stream(weight, 8), scales: perRow(scale), epsilon: scale.DType().Epsilon()}
	if zero != nil {
		g.zeros = perRow(zero)
	}
	return g.view()
}

// blocksOf returns how many neighbours along each axis share a scale.
func blocksOf(shape, scale, block []int) ([]int, error) {
	n, err := tensor.NumElems(scale)
	if err != nil {
		return nil, err
	}
	rank := len(shape)
	each := slices.Clone(shape)
	for a := range each {
		each[a] = max(each[a], 1)
	}
	if n == 1 {
		return each, nil
	}
	wrong := func() error {
		return fmt.Errorf("the scale has shape %s, which divides no %s", tensor.FormatShape(scale), tensor.FormatShape(shape))
	}
	if len(scale) == 1 && rank > 1 { // one of each output
		scale = append(slices.Clone(scale), slices.Repeat([]int{1}, rank-1)...)
	}
	if len(scale) != rank {
		return nil, wrong()
	}
	for a, k := range scale {
		known := 0
		if at := a - (rank - len(block)); at >= 0 {
			known = block[at]
		}
		switch {
		case k == shape[a]:
			each[a] = 1
		case k == 1:
		case k == 0:
			return nil, wrong()
		case known > 0:
			each[a] = known
		case (shape[a]+127)/128 == k:
			each[a] = 128
		case shape[a]%k == 0:
			each[a] = shape[a] / k
		default:
			return nil, wrong()
		}
		if want := (shape[a] + each[a] - 1) / each[a]; want != k {
			return nil, fmt.Errorf("the scale has shape %s: blocks of %d along axis %d of %s are %d", tensor.FormatShape(scale),
				each[a], a, tensor.FormatShape(shape), want)
		}
	}
	return each, nil
}
