package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// AffineBits are the sizes of codes that MLX has.
var AffineBits = []int{1, 2, 3, 4, 5, 6, 8}

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
	if err := fit(weight, scales, bits, group); err != nil {
		return nil, err
	}
	g := integer("mlx", weight, scales, bits, group, last(weight.Shape(), scales.RowLen()*group)...)
	g.dtype, g.codes, g.biases = scales.DType(), stream(weight, bits), perRow(biases)
	return g.view()
}

// fit requires that rows of words have as many codes as the groups.
func fit(weight, scales *tensor.Tensor, bits, group int) error {
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

// awqPlace is the nibble of each of eight columns in a word of AutoAWQ.
var awqPlace = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// AWQ returns a weight that AutoAWQ quantised to 4 bits, version gemm, [out in]: (q − z)·s (arXiv
// 2306.00978). qweight is [in out/8], qzeros [groups out/8], scales [groups out]; a word has the
// columns 0, 2, 4, 6, 1, 3, 5, 7, the lowest nibble first. The result is float32: exact if the
// scales have 16 bits.
func AWQ(qweight, qzeros, scales *tensor.Tensor) (*tensor.Tensor, error) {
	err := check(part{"qweight", qweight, words, []int{-1, -1}}, part{"scales", scales, scaleTypes, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	in, out, n := qweight.Shape()[0], 8*qweight.Shape()[1], scales.Shape()[0]
	err = check(part{"scales", scales, scaleTypes, []int{n, out}}, part{"qzeros", qzeros, words, []int{n, out / 8}})
	if err != nil {
		return nil, err
	}
	if n == 0 || in%n != 0 {
		return nil, fmt.Errorf("%d inputs in %d groups", in, n)
	}
	turned, err := scales.Transpose()
	if err != nil {
		return nil, err
	}
	nibble := func(t *tensor.Tensor) func(column, row int) uint32 {
		b := bytesOf(t)
		return func(column, row int) uint32 {
			return u32(b[(row*out/8+column/8)*4:]) >> (4 * awqPlace[column%8]) & 15
		}
	}
	g := integer("awq", qweight, turned, 4, in/n, out, in)
	g.codes, g.zeros = oneByOne(nibble(qweight)), perGroup(n, nibble(qzeros))
	return g.view()
}

// AWQRows returns a weight that AutoAWQ quantised to 4 bits, version gemv, [out in]: (q − z)·s in
// groups of size inputs. qweight is [out in/8], qzeros [out words], scales [out 8·words], each row a
// little-endian stream; words are padded, what is after the last group means nothing. The result is
// float32: exact if the scales have 16 bits.
func AWQRows(qweight, qzeros, scales *tensor.Tensor, size int) (*tensor.Tensor, error) {
	err := check(part{"qweight", qweight, words, []int{-1, -1}}, part{"qzeros", qzeros, words, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	out, in, n := qweight.Shape()[0], 8*qweight.Shape()[1], qzeros.Shape()[1]
	err = check(part{"qzeros", qzeros, words, []int{out, n}}, part{"scales", scales, scaleTypes, []int{out, 8 * n}})
	if err != nil {
		return nil, err
	}
	if size <= 0 || in%size != 0 || in/size > 8*n {
		return nil, fmt.Errorf("%d inputs in groups of %d, scales for %d groups", in, size, 8*n)
	}
	g := integer("awq", qweight, scales, 4, size, out, in)
	g.codes = stream(qweight, 4)
	g.zeros = perGroup(8*n, inWords(qzeros, 4, 0).row(n))
	return g.view()
}

// GPTQ returns a weight that GPTQ quantised, [out in]: (q − z)·s (arXiv 2210.17323). qweight is
// [in·bits/32 out], each column a little-endian stream of codes; qzeros [groups out·bits/32], each
// row one; scales [groups out]. group says to which group each input belongs, groups of consecutive
// inputs if it is nil. If less is true, zero points are stored less one, modulo 2^bits, as all do
// whose checkpoint_format is not gptq_v2. The result is float32: exact if the scales have 16 bits.
func GPTQ(qweight, qzeros, scales, group *tensor.Tensor, bits int, less bool) (*tensor.Tensor, error) {
	if !slices.Contains([]int{2, 3, 4, 8}, bits) {
		return nil, fmt.Errorf("%d bits: want 2, 3, 4 or 8", bits)
	}
	err := check(part{"qweight", qweight, words, []int{-1, -1}}, part{"scales", scales, scaleTypes, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	in, out, n := qweight.Shape()[0]*32/bits, qweight.Shape()[1], scales.Shape()[0]
	width := (out*bits + 31) / 32
	err = check(part{"qzeros", qzeros, words, []int{n, width}}, part{"scales", scales, scaleTypes, []int{n, out}})
	switch {
	case err != nil:
		return nil, err
	case qweight.Shape()[0]*32%bits != 0 || out*bits%32 != 0:
		return nil, fmt.Errorf("qweight has shape %s: no whole number of codes of %d bits",
			tensor.FormatShape(qweight.Shape()), bits)
	case n == 0 || in%n != 0 && group == nil:
		return nil, fmt.Errorf("%d inputs in %d groups", in, n)
	}
	turned, err := scales.Transpose()
	if err != nil {
		return nil, err
	}
	g := integer("gptq", qweight, turned, bits, max((in+n-1)/n, 1), out, in)
	if g.group, err = indices("g_idx", group, in, n); err != nil {
		return nil, err
	}
	g.codes = oneByOne(inWords(qweight, bits, 0).column(out))
	zero, plus := inWords(qzeros, bits, 0).row(width), uint32(0)
	if less {
		plus = 1
	}
	g.zeros = perGroup(n, func(r, k int) uint32 { return (zero(k, r) + plus) & (1<<bits - 1) })
	return g.view()
}

// indices are those of n groups, one for each input; nil of nil.
func indices(name string, t *tensor.Tensor, in, n int) ([]int64, error) {
	if t == nil {
		return nil, nil
	}
	if err := check(part{name, t, []tensor.DType{tensor.I32, tensor.I64}, []int{in}}); err != nil {
		return nil, err
	}
	out := make([]int64, t.Len())
	t.Int64s(out, 0)
	for i, g := range out {
		if g < 0 || g >= int64(n) {
			return nil, fmt.Errorf("%s[%d] is group %d of %d", name, i, g, n)
		}
	}
	return out, nil
}

// Words returns a weight that compressed-tensors packed into words, [out in]: (q − z)·s, where q
// and z are stored plus 2^(bits−1). weight is [out ⌈in·bits/32⌉], each row a little-endian stream
// of codes; older versions wrote [out ⌈in/n⌉], n = ⌊32/bits⌋ codes a word, which is another layout
// for 3, 5, 6 and 7 bits. scale is [out groups]; zero nil, or packed likewise along the outputs,
// [words groups]. group says to which group each input belongs, groups of consecutive inputs if it
// is nil. The result is float32: exact if the scales have 16 bits.
func Words(weight, scale, zero, group *tensor.Tensor, bits, in int) (*tensor.Tensor, error) {
	if bits < 1 || bits > 8 || in < 0 {
		return nil, fmt.Errorf("%d inputs of %d bits: want 1 to 8 bits", in, bits)
	}
	err := check(part{"weight_packed", weight, words, []int{-1, -1}}, part{"weight_scale", scale, scaleTypes, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	out, n := weight.Shape()[0], scale.Shape()[1]
	if err := check(part{"weight_scale", scale, scaleTypes, []int{out, n}}); err != nil {
		return nil, err
	}
	if n == 0 || in%n != 0 && group == nil {
		return nil, fmt.Errorf("%d inputs in %d groups", in, n)
	}
	each, err := perWord("weight_packed", weight, weight.RowLen(), in, bits)
	if err != nil {
		return nil, err
	}
	g := integer("int", weight, scale, bits, max(in/n, 1), out, in)
	g.codes = oneByOne(inWords(weight, bits, each).row(weight.RowLen()))
	g.zeros = perGroup(n, func(int, int) uint32 { return 1 << (bits - 1) })
	if zero != nil {
		if err := check(part{"weight_zero_point", zero, words, []int{-1, n}}); err != nil {
			return nil, err
		}
		each, err := perWord("weight_zero_point", zero, zero.Shape()[0], out, bits)
		if err != nil {
			return nil, err
		}
		stored := inWords(zero, bits, each).column(n)
		g.zeros = perGroup(n, func(r, k int) uint32 { return stored(k, r) })
	}
	if g.group, err = indices("weight_g_idx", group, in, n); err != nil {
		return nil, err
	}
	return g.view()
}

// perWord returns how many codes a word has if none lies in two, else 0.
func perWord(name string, t *tensor.Tensor, words, n, bits int) (int, error) {
	switch each := 32 / bits; words {
	case (n*bits + 31) / 32:
		return 0, nil
	case (n + each - 1) / each:
		return each, nil
	}
	return 0, fmt.Errorf("%s has shape %s: %d codes of %d bits are %d words", name, tensor.FormatShape(t.Shape()), n, bits, (n*bits+31)/32)
}

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
	if global != nil {
		if err := check(part{"the global scale", global, scaleTypes, nil}); err != nil {
			return nil, err
		}
		if global.Len() != 1 {
			return nil, fmt.Errorf("the global scale has shape %s, want one number", tensor.FormatShape(global.Shape()))
		}
	}
	n, width := scales.RowLen(), weight.RowLen()*weight.DType().Size()
	in := n * group
	if 2*width != in || weight.Len()/max(weight.RowLen(), 1) != scales.Len()/max(n, 1) {
		return nil, fmt.Errorf("weight %s has rows of %d codes, scales %s in groups of %d are for %d", weight, 2*width, scales,
			group, in)
	}
	g := floating("mxfp4", weight, scales, smallfloat.E2M1[:], 4, group)
	if scales.DType() != tensor.F8E8M0FNU {
		g.name = "nvfp4"
	}
	if global != nil {
		factor, own := float32(global.At(0)), g.scales
		g.scales = func(r int) []float32 {
			s := own(r)
			for i := range s {
				if divide {
					s[i] /= factor
				} else {
					s[i] *= factor
				}
			}
			return s
		}
	}
	return g.view()
}

// FP8Words returns floats of 8 bits (E4M3) in words of four, times the scale of their group, […
// in]: MLX's mode mxfp8. weight is [… in/4], scales [… in/group].
func FP8Words(weight, scales *tensor.Tensor, group int) (*tensor.Tensor, error) {
	kinds := []tensor.DType{tensor.F8E8M0FNU, tensor.F8E4M3FN}
	if err := check(part{"weight", weight, words, nil}, part{"scales", scales, kinds, nil}); err != nil {
		return nil, err
	}
	if err := fit(weight, scales, 8, group); err != nil {
		return nil, err
	}
	return floating("mxfp8", weight, scales, smallfloat.F8().E4M3FN[:], 8, group).view()
}

// floating makes a weight of small floats, of which each row is a stream.
func floating(name string, weight, scales *tensor.Tensor, values []float32, bits, group int) *grouped {
	return &grouped{name: name, weight: weight, dtype: tensor.F32, shape: last(weight.Shape(), scales.RowLen()*group), size: group,
		values: values, codes: stream(weight, bits), scales: perRow(scales), epsilon: scales.DType().Epsilon()}
}
