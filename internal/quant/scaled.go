package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/smallfloat"
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
	s := &scaled{weight: weight, scale: scale, zero: zero, shape: shape, each: each}
	s.strides = make([]int, len(shape))
	n := 1
	for a := len(shape) - 1; a >= 0; a-- {
		s.strides[a] = n
		n *= (shape[a] + each[a] - 1) / max(each[a], 1)
	}
	name := fmt.Sprintf("%s×%s%s", weight.DType().Short(), scale.DType().Short(), tensor.FormatShape(scale.Shape()))
	s.values = numbersOf(weight.DType())
	return rows{weight.RowLen(), s.row, 0, len(s.values) - 1, s.values, scale.DType().Epsilon(), nil}.
		view(name, tensor.F32, weight, shape...)
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

type scaled struct {
	weight, scale, zero *tensor.Tensor
	shape               []int
	each                []int // how many neighbours along each axis share a scale
	strides             []int // of the scales
	values              []float32
}

// numbersOf returns the finite numbers of a type of 8 bits, in order.
func numbersOf(d tensor.DType) []float32 {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	t, err := tensor.New(d, []int{256}, all)
	if err != nil {
		return nil
	}
	out := slices.DeleteFunc(floats(t, 0, 256), func(v float32) bool { return v-v != 0 })
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *scaled) row(dst []float32, r, from, force int) {
	width, axis := s.weight.RowLen(), len(s.shape)-1
	if force == asStored {
		s.weight.Float32s(dst, r*width+from)
	} else {
		fill(dst, s.values[force])
	}
	base, rest := 0, r
	for a := axis - 1; a >= 0; a-- {
		base += rest % s.shape[a] / s.each[a] * s.strides[a]
		rest /= s.shape[a]
	}
	each := s.each[axis]
	first := from / each
	n := (from+len(dst)-1)/each - first + 1
	scales := floats(s.scale, base+first, n)
	var zeros []float32
	if s.zero != nil {
		zeros = floats(s.zero, base+first, n)
	}
	for i, v := range scales {
		k := min(len(dst), (first+i+1)*each-from)
		part := dst[:k]
		if zeros != nil {
			for j := range part {
				part[j] = float32(part[j]-zeros[i]) * v
			}
		} else {
			for j := range part {
				part[j] *= v
			}
		}
		dst, from = dst[k:], from+k
	}
}

// FP8Words returns floats of 8 bits (E4M3) in words of four, times the scale of their group, […
// in]: MLX's mode mxfp8. weight is [… in/4], scales [… in/group].
func FP8Words(weight, scales *tensor.Tensor, group int) (*tensor.Tensor, error) {
	kinds := []tensor.DType{tensor.F8E8M0FNU, tensor.F8E4M3FN}
	if err := check(part{"weight", weight, words, nil}, part{"scales", scales, kinds, nil}); err != nil {
		return nil, err
	}
	if err := grouped(weight, scales, 8, group); err != nil {
		return nil, err
	}
	values := &smallfloat.F8().E4M3FN
	width, groups, sorted := 4*weight.RowLen(), scales.RowLen(), numbersOf(tensor.F8E4M3FN)
	row := func(dst []float32, r, from, force int) {
		codes := bytesOf(weight)[r*width+from:]
		first := from / group
		s := floats(scales, r*groups+first, (from+len(dst)-1)/group-first+1)
		for i := range dst {
			v := values[codes[i]]
			if force != asStored {
				v = sorted[force]
			}
			dst[i] = v * s[(from+i)/group-first]
		}
	}
	return rows{width, row, 0, len(sorted) - 1, sorted, scales.DType().Epsilon(), nil}.
		view("mxfp8", tensor.F32, weight, last(weight.Shape(), width)...)
}
