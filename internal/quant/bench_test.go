package quant_test

import (
	"testing"

	"github.com/goparity/goparity/internal/quant"
)

// BenchmarkBlocks dequantises 2^20 elements. The speed is that of the output.
func BenchmarkBlocks(b *testing.B) {
	for _, k := range []*quant.Block{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q5_K, quant.IQ4_NL, quant.IQ2_XS} {
		b.Run(k.Name, func(b *testing.B) {
			const n = 1 << 20
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
