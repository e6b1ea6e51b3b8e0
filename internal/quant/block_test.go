package quant_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
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

// TestKernels compares assembly and Go, bit for bit, on random blocks and groups.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	both := func(name string, n int, read func(dst []float32)) {
		fast, slow := make([]float32, n), make([]float32, n)
		read(fast)
		undo := quant.Vector(false)
		read(slow)
		undo()
		for i, v := range slow {
			if f := fast[i]; math.Float32bits(f) != math.Float32bits(v) && (f == f || v == v) {
				require.Failf(t, name, "element %d is %v, in Go %v", i, f, v)
			}
		}
	}
	for _, k := range []*quant.Block{quant.Q4_0, quant.Q8_0, quant.Q4_K} {
		data := random(999 * k.Size)
		both(k.Name, 999*k.Len, func(dst []float32) { k.Unpack(dst, data, 0) })
	}
	for _, bits := range []int{2, 4, 8} {
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
			view := func() *tensor.Tensor {
				rng = rand.New(rand.NewPCG(3, uint64(bits)))
				part := func(d tensor.DType, columns int) *tensor.Tensor {
					x, err := tensor.New(d, []int{64, columns}, random(64*columns*d.Size()))
					require.NoError(t, err)
					return x
				}
				x, err := quant.Affine(part(tensor.U32, 8*bits), part(d, 8), part(d, 8), bits, 32)
				require.NoError(t, err)
				return x
			}
			for _, from := range []int{0, 1, 4, 8, 31} {
				both(fmt.Sprint(bits, d), 64*256-from, func(dst []float32) { view().Float32s(dst, from) })
			}
		}
	}
	codes, err := tensor.New(tensor.U8, []int{9, 64}, random(9*64))
	require.NoError(t, err)
	scales, err := tensor.New(tensor.F8E4M3FN, []int{9, 8}, random(9*8))
	require.NoError(t, err)
	x, err := quant.FP4(codes, scales, nil, false, 16)
	require.NoError(t, err)
	for _, from := range []int{0, 1, 2, 18} {
		both("nvfp4", 9*128-from, func(dst []float32) { x.Float32s(dst, from) })
	}
}
