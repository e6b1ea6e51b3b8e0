package quant

import (
	"fmt"

	"github.com/goparity/goparity/tensor"
)

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
	err := check(part{"weight_packed", weight, words, []int{-1, -1}},
		part{"weight_scale", scale, scaleTypes, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	out, groups := weight.Shape()[0], scale.Shape()[1]
	if err := check(part{"weight_scale", scale, scaleTypes, []int{out, groups}}); err != nil {
		return nil, err
	}
	if groups == 0 || in%groups != 0 && group == nil {
		return nil, fmt.Errorf("%d inputs in %d groups", in, groups)
	}
	w := &wordRows{weight: weight, scale: scale, zero: zero, bits: bits, groups: groups, size: max(in/groups, 1)}
	if w.codes, err = layoutOf(weight.RowLen(), in, bits); err != nil {
		return nil, fmt.Errorf("weight_packed has shape %s: %w", tensor.FormatShape(weight.Shape()), err)
	}
	if zero != nil {
		if err := check(part{"weight_zero_point", zero, words, []int{-1, groups}}); err != nil {
			return nil, err
		}
		if w.zeros, err = layoutOf(zero.Shape()[0], out, bits); err != nil {
			return nil, fmt.Errorf("weight_zero_point has shape %s: %w", tensor.FormatShape(zero.Shape()), err)
		}
	}
	if group != nil {
		if err := check(part{"weight_g_idx", group, []tensor.DType{tensor.I32, tensor.I64}, []int{in}}); err != nil {
			return nil, err
		}
		if w.group, err = indices(group, groups); err != nil {
			return nil, err
		}
	}
	return rows{in, w.row, 0, 1<<bits - 1, upTo(1 << bits), scale.DType().Epsilon(), w.group}.
		view(fmt.Sprintf("int%d/%d", bits, w.size), tensor.F32, weight, out, in)
}

// layout is how codes lie in words that are stride words apart.
type layout struct{ bits, each int } // each: codes a word if none lies in two; else 0

func layoutOf(words, n, bits int) (layout, error) {
	each := 32 / bits
	switch words {
	case (n*bits + 31) / 32:
		return layout{bits, 0}, nil
	case (n + each - 1) / each:
		return layout{bits, each}, nil
	}
	return layout{}, fmt.Errorf("%d codes of %d bits are %d words", n, bits, (n*bits+31)/32)
}

// at returns code i of the words that begin at a byte and are stride bytes apart.
func (l layout) at(b []byte, stride, i int) float32 {
	mask := uint32(1)<<l.bits - 1
	if l.each > 0 {
		return float32(u32(b[i/l.each*stride:]) >> (i % l.each * l.bits) & mask)
	}
	bit := i * l.bits
	v := u32(b[bit>>5*stride:]) >> (bit & 31)
	if over := bit&31 + l.bits - 32; over > 0 {
		v |= u32(b[(bit>>5+1)*stride:]) << (l.bits - over)
	}
	return float32(v & mask)
}

type wordRows struct {
	weight, scale, zero *tensor.Tensor
	bits, groups, size  int
	codes, zeros        layout
	group               []int64
}

func (w *wordRows) row(dst []float32, r, from, force int) {
	codes := bytesOf(w.weight)[r*w.weight.RowLen()*4:]
	scales, zeros := floats(w.scale, r*w.groups, w.groups), make([]float32, w.groups)
	for k := range zeros {
		zeros[k] = float32(int(1) << (w.bits - 1))
		if w.zero != nil {
			zeros[k] = w.zeros.at(bytesOf(w.zero)[4*k:], 4*w.groups, r)
		}
	}
	for i := range dst {
		at := from + i
		k := 0
		if w.group != nil {
			k = int(w.group[at])
		} else {
			k = at / w.size
		}
		q := float32(force)
		if force == asStored {
			q = w.codes.at(codes, 4, at)
		}
		dst[i] = (q - zeros[k]) * scales[k]
	}
}
