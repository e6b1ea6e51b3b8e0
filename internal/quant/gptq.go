package quant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// GPTQ returns a weight that GPTQ quantised, [out in]: (q − z)·s (arXiv 2210.17323). qweight is
// [in·bits/32 out], each column a little-endian stream of codes; qzeros [groups out·bits/32], each
// row one; scales [groups out]. group says to which group each input belongs, groups of consecutive
// inputs if it is nil. If less is true, zero points are stored less one, modulo 2^bits, as all do
// whose checkpoint_format is not gptq_v2. The result is float32: exact if the scales have 16 bits.
func GPTQ(qweight, qzeros, scales, group *tensor.Tensor, bits int, less bool) (*tensor.Tensor, error) {
	if !slices.Contains([]int{2, 3, 4, 8}, bits) {
		return nil, fmt.Errorf("%d bits: want 2, 3, 4 or 8", bits)
	}
	err := check(part{"qweight", qweight, words, []int{-1, -1}},
		part{"scales", scales, scaleTypes, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	g := &gptq{qweight: qweight, qzeros: qzeros, bits: bits, in: qweight.Shape()[0] * 32 / bits,
		out: qweight.Shape()[1], groups: scales.Shape()[0]}
	if less {
		g.plus = 1
	}
	err = check(part{"qzeros", qzeros, words, []int{g.groups, (g.out*bits + 31) / 32}},
		part{"scales", scales, scaleTypes, []int{g.groups, g.out}})
	switch {
	case err != nil:
		return nil, err
	case qweight.Shape()[0]*32%bits != 0 || g.out*bits%32 != 0:
		return nil, fmt.Errorf("qweight has shape %s: no whole number of codes of %d bits",
			tensor.FormatShape(qweight.Shape()), bits)
	case g.groups == 0 || g.in%g.groups != 0 && group == nil:
		return nil, fmt.Errorf("%d inputs in %d groups", g.in, g.groups)
	}
	if g.scales, err = scales.Transpose(); err != nil {
		return nil, err
	}
	if group != nil {
		if err := check(part{"g_idx", group, []tensor.DType{tensor.I32, tensor.I64}, []int{g.in}}); err != nil {
			return nil, err
		}
		if g.group, err = indices(group, g.groups); err != nil {
			return nil, err
		}
	}
	return rows{g.in, g.row, 0, 1<<bits - 1, upTo(1 << bits), scales.DType().Epsilon(), g.group}.
		view(fmt.Sprintf("gptq%d/%d", bits, (g.in+g.groups-1)/g.groups), tensor.F32, qweight,
			g.out, g.in)
}

// indices are those of groups, all of which exist.
func indices(t *tensor.Tensor, groups int) ([]int64, error) {
	out := make([]int64, t.Len())
	t.Int64s(out, 0)
	for i, g := range out {
		if g < 0 || g >= int64(groups) {
			return nil, fmt.Errorf("g_idx[%d] is group %d of %d", i, g, groups)
		}
	}
	return out, nil
}

type gptq struct {
	qweight, qzeros, scales *tensor.Tensor // scales [out groups]
	bits, plus              int
	in, out, groups         int
	group                   []int64 // of each input; nil for consecutive ones
}

func (g *gptq) row(dst []float32, r, from, force int) {
	codes, zeros, scales := bytesOf(g.qweight), bytesOf(g.qzeros), floats(g.scales, r*g.groups, g.groups)
	zero := make([]float32, g.groups)
	width := g.qzeros.RowLen() * 4
	for i := range zero {
		z := code(zeros[i*width:(i+1)*width], r*g.bits, g.bits)
		zero[i] = float32((z + uint32(g.plus)) & (1<<g.bits - 1))
	}
	size, stream := max(g.in/g.groups, 1), layout{g.bits, 0}
	for i := range dst {
		at := from + i
		k := 0
		if g.group != nil {
			k = int(g.group[at])
		} else {
			k = at / size
		}
		q := float32(force)
		if force == asStored {
			q = stream.at(codes[4*r:], 4*g.out, at)
		}
		dst[i] = (q - zero[k]) * scales[k]
	}
}
