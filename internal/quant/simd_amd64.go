package quant

import (
	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/tensor"
)

// vector says that the kernels in assembly may be used. They give the same bits as the functions
// that call them.
var vector = cpu.X86.HasAVX2 && cpu.X86.HasF16C

func vectorQ4_0(dst []float32, src []byte) bool {
	n := min(len(src)/18, len(dst)/32)
	if vector && n > 0 {
		q4_0AVX2(&dst[0], &src[0], n)
	}
	return vector
}

func vectorQ8_0(dst []float32, src []byte) bool {
	n := min(len(src)/34, len(dst)/32)
	if vector && n > 0 {
		q8_0AVX2(&dst[0], &src[0], n)
	}
	return vector
}

func vectorAffine4(out *[64]float32, q *[32]byte, scales *[4]float32) bool {
	if vector {
		affine4AVX2(&out[0], &q[0], &scales[0])
	}
	return vector
}

// affineKernel writes whole groups of n numbers.
type affineKernel = func(dst *float32, codes *byte, n, groups int, scales, biases *float32)

var affineKernels = map[int]map[tensor.DType]affineKernel{
	4: {tensor.F32: affine4F32AVX2, tensor.F16: affine4F16AVX2, tensor.BF16: affine4BF16AVX2},
	8: {tensor.F32: affine8F32AVX2, tensor.F16: affine8F16AVX2, tensor.BF16: affine8BF16AVX2},
}

// vectorAffine returns what writes whole groups of codes of some bits, as many as there are scales;
// nil if there is no kernel.
func vectorAffine(bits, group int, d tensor.DType) func(dst []float32, codes []byte, scales, biases []float32) {
	kernel := affineKernels[bits][d]
	if !vector || kernel == nil || group%32 != 0 {
		return nil
	}
	return func(dst []float32, codes []byte, scales, biases []float32) {
		n := len(scales)
		_, _, _ = dst[n*group-1], codes[n*group*bits/8-1], biases[n-1]
		kernel(&dst[0], &codes[0], group, n, &scales[0], &biases[0])
	}
}

// vectorChosen is chosen for a multiple of 8 numbers. It returns how many it wrote.
func vectorChosen(dst []float32, codes []byte, table *[16]float32) int {
	n := min(len(dst), 2*len(codes)) &^ 7
	if !vector || n == 0 {
		return 0
	}
	chosenAVX2(&dst[0], &codes[0], n, &table[0])
	return n
}
