package compare_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// pairOf makes two tensors of a type: normal values, and the same with small errors.
func pairOf(tb testing.TB, d tensor.DType, shape ...int) (golden, actual *tensor.Tensor) {
	n, err := tensor.NumElems(shape)
	require.NoError(tb, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	g, a := make([]byte, 0, n*d.Size()), make([]byte, 0, n*d.Size())
	put := func(b []byte, v float64) []byte {
		switch d {
		case tensor.F64:
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case tensor.F32:
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case tensor.BF16:
			return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(v))>>16))
		default:
			tb.Fatalf("no values of %s here", d)
			return nil
		}
	}
	for range n {
		v := rnd.NormFloat64()
		g, a = put(g, v), put(a, v+1e-3*rnd.NormFloat64())
	}
	golden, err = tensor.New(d, shape, g)
	require.NoError(tb, err)
	actual, err = tensor.New(d, shape, a)
	require.NoError(tb, err)
	return golden, actual
}

// BenchmarkTensors reads both sides: MB/s counts the bytes of the two.
func BenchmarkTensors(b *testing.B) {
	for _, bench := range []struct {
		name  string
		dtype tensor.DType
		shape []int
		turn  bool // transposed
	}{
		{"f32/rows1024", tensor.F32, []int{4096, 1024}, false},
		{"f32/rows64", tensor.F32, []int{65536, 64}, false},
		{"f32/rows1", tensor.F32, []int{1 << 22, 1}, false},
		{"f32/one row", tensor.F32, []int{1 << 22}, false},
		{"f32/transposed", tensor.F32, []int{2048, 2048}, true},
		{"bf16/rows1024", tensor.BF16, []int{4096, 1024}, false},
		{"f64/rows1024", tensor.F64, []int{4096, 1024}, false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			g, a := pairOf(b, bench.dtype, bench.shape...)
			if bench.turn {
				var err error
				g, err = g.Transpose()
				require.NoError(b, err)
				a, err = a.Transpose()
				require.NoError(b, err)
			}
			b.SetBytes(int64(2 * g.Len() * bench.dtype.Size()))
			b.ReportAllocs()
			for b.Loop() {
				_, err := compare.Tensors(g, a, compare.Tolerance{Atol: 1e-3, Rtol: 1e-3})
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	g, a := pairOf(b, tensor.F32, 1024, 1024)
	b.SetBytes(int64(2 * 4 * g.Len()))
	for b.Loop() {
		_, err := compare.Explain(g, a, compare.Tolerance{Atol: 1e-3})
		require.NoError(b, err)
	}
}
