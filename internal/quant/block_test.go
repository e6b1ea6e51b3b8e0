package quant_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/quant"
)

// TestParts reads parts of blocks. The values themselves are tested by tensor/gguf.
func TestParts(t *testing.T) {
	for _, k := range []*quant.Block{quant.Q4_0, quant.Q6_K, quant.NVFP4} {
		data := make([]byte, 4*k.Size)
		for i := range data {
			data[i] = byte(i * 7)
		}
		all := make([]float32, 4*k.Len)
		k.Unpack(all, data, 0)
		for from := 0; from < len(all); from += 5 {
			for n := 0; n <= len(all)-from; n += 7 {
				part := make([]float32, n)
				k.Unpack(part, data, from)
				for i, v := range part {
					if math.Float32bits(all[from+i]) != math.Float32bits(v) {
						require.Failf(t, k.Name, "element %d of %d from %d", i, n, from)
					}
				}
			}
		}
	}
}
