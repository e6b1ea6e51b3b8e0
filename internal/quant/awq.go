package quant

import (
	"fmt"

	"github.com/goparity/goparity/tensor"
)

// awqPlace is the nibble of each of eight columns in a word of AutoAWQ.
var awqPlace = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// AWQ returns a weight that AutoAWQ quantised to 4 bits, version gemm, [out in]: (q − z)·s (arXiv
// 2306.00978). qweight is [in out/8], qzeros [groups out/8], scales [groups out]; a word has the
// columns 0, 2, 4, 6, 1, 3, 5, 7, the lowest nibble first. The result is float32: exact if the
// scales have 16 bits.
func AWQ(qweight, qzeros, scales *tensor.Tensor) (*tensor.Tensor, error) {
	err := check(part{"qweight", qweight, words, []int{-1, -1}},
		part{"scales", scales, scaleTypes, []int{-1, -1}})
	if err != nil {
		return nil, err
	}
	in, out, groups := qweight.Shape()[0], 8*qweight.Shape()[1], scales.Shape()[0]
	err = check(part{"scales", scales, scaleTypes, []int{groups, out}},
		part{"qzeros", qzeros, words, []int{groups, out / 8}})
	if err != nil {
		return nil, err
	}
	if groups == 0 || in%groups != 0 {
		return nil, fmt.Errorf("%d inputs in %d groups", in, groups)
	}
	turned, err := scales.Transpose()
	if err != nil {
		return nil, err
	}
	nibble := func(codes []byte, row, column int) float32 {
		return float32(u32(codes[(row*out/8+column/8)*4:]) >> (4 * awqPlace[column%8]) & 15)
	}
	size := in / groups
	row := func(dst []float32, r, from, force int) {
		codes, zeros, scales := bytesOf(qweight), bytesOf(qzeros), floats(turned, r*groups, groups)
		for i := range dst {
			at := from + i
			q := float32(force)
			if force == asStored {
				q = nibble(codes, at, r)
			}
			dst[i] = (q - nibble(zeros, at/size, r)) * scales[at/size]
		}
	}
	return rows{in, row, 0, 15, upTo(16), scales.DType().Epsilon(), nil}.
		view(fmt.Sprintf("awq4/%d", size), tensor.F32, qweight, out, in)
}

// AWQRows returns a weight that AutoAWQ quantised to 4 bits, version gemv, [out in]: (q − z)·s in
// groups of size inputs. qweight is [out in/8], qzeros [out words], scales [out 8·words], each row a
// little-endian stream; words are padded, what is behind the last group means nothing. The result is
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
	row := func(dst []float32, r, from, force int) {
		codes, zeros := bytesOf(qweight)[r*in/2:], bytesOf(qzeros)[r*n*4:]
		scales := floats(scales, r*8*n, in/size)
		for i := range dst {
			at := from + i
			q := float32(force)
			if force == asStored {
				q = float32(code(codes, 4*at, 4))
			}
			dst[i] = (q - float32(code(zeros, at/size*4, 4))) * scales[at/size]
		}
	}
	return rows{in, row, 0, 15, upTo(16), scales.DType().Epsilon(), nil}.
		view(fmt.Sprintf("awq4/%d", size), tensor.F32, qweight, out, in)
}
