package quant_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
)

// BenchmarkBlocks dequantises 2^16 elements. The speed is that of the output.
func BenchmarkBlocks(b *testing.B) {
	for _, k := range []*quant.Block{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q5_K, quant.IQ4_NL, quant.IQ2_XS} {
		b.Run(k.Name, func(b *testing.B) {
			const n = 1 << 16
			data := make([]byte, n/k.Len*k.Size)
			for i := range data {
				data[i] = byte(i*7 + i>>8)
			}
			dst := make([]float32, n)
			b.SetBytes(4 * n)
			for b.Loop() {
				k.Unpack(dst, data, 0)
			}
		})
	}
}

// BenchmarkAffine dequantises MLX's codes, 2^16 of them.
func BenchmarkAffine(b *testing.B) {
	for _, bits := range []int{2, 3, 4, 8} {
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
			b.Run(fmt.Sprint(bits, "bits-", d.Short()), func(b *testing.B) {
				const rows, columns, group = 16, 4096, 64
				part := func(d tensor.DType, columns int) *tensor.Tensor {
					data := make([]byte, rows*columns*d.Size())
					for i := range data {
						data[i] = byte(i * 7 & 0x3b) // no NaN
					}
					x, err := tensor.New(d, []int{rows, columns}, data)
					require.NoError(b, err)
					return x
				}
				x, err := quant.Affine(part(tensor.U32, columns*bits/32), part(d, columns/group), part(d, columns/group), bits, group)
				require.NoError(b, err)
				dst := make([]float32, rows*columns)
				b.SetBytes(4 * rows * columns)
				for b.Loop() {
					x.Float32s(dst, 0)
				}
			})
		}
	}
}
