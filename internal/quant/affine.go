package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// AffineBits are the sizes of codes that MLX has.
var AffineBits = []int{1, 2, 3, 4, 5, 6, 8}

// affine is a weight of MLX: codes q, and a scale s and a bias b for each group of a row.
type affine struct {
	weight, scales, biases *tensor.Tensor
	bits, group, groups    int // groups in a row
	round                  func(float32) float32
	// kernel writes whole groups; nil for none.
	kernel func(dst []float32, codes []byte, scales, biases []float32)
}

// Affine returns a weight that MLX quantised, [… in]: round(round(q·s) + b) in the type of the
// scales (mlx.core.quantize, mode affine). weight is [… in·bits/32], each row a little-endian
// stream of codes; scales and biases are [… in/group].
func Affine(weight, scales, biases *tensor.Tensor, bits, group int) (*tensor.Tensor, error) {
	if !slices.Contains(AffineBits, bits) || group <= 0 {
		return nil, fmt.Errorf("%d bits in groups of %d: want %v bits", bits, group, AffineBits)
	}
	if err := check(part{"weight", weight, words, nil}, part{"scales", scales, scaleTypes, nil}); err != nil {
		return nil, err
	}
	if err := check(part{"biases", biases, []tensor.DType{scales.DType()}, scales.Shape()}); err != nil {
		return nil, err
	}
	groups := scales.RowLen()
	if err := grouped(weight, scales, bits, group); err != nil {
		return nil, err
	}
	a := &affine{weight, scales, biases, bits, group, groups, rounding(scales.DType()),
		vectorAffine(bits, group, scales.DType())}
	name := fmt.Sprintf("mlx%d/%d", bits, group)
	return rows{groups * group, a.row, 0, 1<<bits - 1, upTo(1 << bits), scales.DType().Epsilon(), nil}.
		view(name, scales.DType(), weight, last(weight.Shape(), groups*group)...)
}

// grouped requires that rows of words have as many codes as the groups.
func grouped(weight, scales *tensor.Tensor, bits, group int) error {
	in := scales.RowLen() * group
	switch {
	case len(weight.Shape()) == 0 || !slices.Equal(last(weight.Shape(), scales.RowLen()), scales.Shape()):
		return fmt.Errorf("scales have shape %s, the weight %s: want the same rows",
			tensor.FormatShape(scales.Shape()), tensor.FormatShape(weight.Shape()))
	case weight.RowLen()*32 != in*bits:
		return fmt.Errorf("rows of %d words are %g codes of %d bits, but %d groups of %d are %d: the group size or the "+
			"number of bits is another", weight.RowLen(), float64(weight.RowLen()*32)/float64(bits), bits,
			scales.RowLen(), group, in)
	}
	return nil
}

// rounding returns what rounds to a type of scales.
func rounding(d tensor.DType) func(float32) float32 {
	switch d {
	case tensor.F16:
		return smallfloat.RoundF16
	case tensor.BF16:
		return smallfloat.RoundBF16
	}
	return func(v float32) float32 { return float32(v) } // no fused multiplication and addition
}

func (a *affine) row(dst []float32, r, from, force int) {
	width := a.weight.RowLen() * 4
	codes := bytesOf(a.weight)[r*width : (r+1)*width]
	first := from / a.group
	n := (from+len(dst)-1)/a.group - first + 1
	scales, biases := floats(a.scales, r*a.groups+first, n), floats(a.biases, r*a.groups+first, n)
	for i := 0; i < n; i++ {
		if whole := len(dst) / a.group; force == asStored && a.kernel != nil && whole > 0 && from%a.group == 0 {
			k := whole * a.group
			a.kernel(dst, codes[from*a.bits/8:], scales[i:i+whole], biases[i:i+whole])
			dst, from, i = dst[k:], from+k, i+whole-1
			continue
		}
		k := min(len(dst), (first+i+1)*a.group-from)
		if force != asStored {
			fill(dst[:k], a.round(a.round(float32(force)*scales[i])+biases[i]))
		} else {
			a.part(dst[:k], codes, from, scales[i], biases[i])
		}
		dst, from = dst[k:], from+k
	}
}

func fill(dst []float32, v float32) {
	for i := range dst {
		dst[i] = v
	}
}

// part writes elements of one group.
func (a *affine) part(dst []float32, codes []byte, from int, s, b float32) {
	if a.bits > 4 {
		for i := range dst {
			dst[i] = a.round(a.round(float32(code(codes, (from+i)*a.bits, a.bits))*s) + b)
		}
		return
	}
	var table [16]float32
	for q := range 1 << a.bits {
		table[q] = a.round(a.round(float32(q)*s) + b)
	}
	if a.bits == 4 && from%2 == 0 && len(dst)%2 == 0 {
		chosen(dst, codes[from/2:], &table)
		return
	}
	for i := range dst {
		dst[i] = table[code(codes, (from+i)*a.bits, a.bits)]
	}
}

// chosen writes the numbers that codes of 4 bits stand for, the low nibble first.
func chosen(dst []float32, codes []byte, table *[16]float32) {
	n := vectorChosen(dst, codes, table)
	dst, codes = dst[n:], codes[n/2:][:(len(dst)-n)/2]
	for i, b := range codes {
		pair := dst[2*i : 2*i+2 : 2*i+2]
		pair[0], pair[1] = table[b&15], table[b>>4]
	}
}
