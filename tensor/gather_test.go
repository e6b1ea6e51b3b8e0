package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
)

// Gather returns the same bytes as a copy, from any element on, and Float32s its values.
func TestGather(t *testing.T) {
	for _, d := range []tensor.DType{tensor.U8, tensor.F8E5M2, tensor.BF16, tensor.F32, tensor.F64} {
		data := make([]byte, 3*70*45*d.Size())
		for i := range data {
			data[i] = byte(i * 7 % 251)
		}
		for _, big := range []bool{false, true} {
			x, err := tensor.FromSpec(tensor.Spec{DType: d, Shape: []int{3, 70, 45}, Data: data, BigEndian: big})
			require.NoError(t, err)
			for _, row := range []struct {
				order  []int
				reason string
			}{{[]int{0, 1, 2}, "as stored"}, {[]int{0, 2, 1}, "matrices of columns"},
				{[]int{2, 1, 0}, "all axes turned"}, {[]int{1, 0, 2}, "rows in another order"}} {
				v, err := x.Transpose(row.order...)
				require.NoError(t, err)
				want, ok := v.Copy().Bytes()
				require.True(t, ok)
				for _, start := range []int{0, 1, v.RowLen(), 10 * v.RowLen(), 5*v.RowLen() + 3, v.Len() - 1, v.Len()} {
					for _, n := range []int{1, 9 * v.RowLen(), 20*v.RowLen() + 5, v.Len()} {
						got := make([]byte, n*d.Size())
						m := v.Gather(got, start)
						assert.Equal(t, min(n, v.Len()-start), m, row.reason)
						assert.Equal(t, want[start*d.Size():(start+m)*d.Size()], got[:m*d.Size()], row.reason)
					}
				}
				if d == tensor.F64 {
					assert.Panics(t, func() { v.Float32s(make([]float32, 1), 0) })
					continue
				}
				floats, doubles := make([]float32, v.Len()), make([]float64, v.Len())
				assert.Equal(t, v.Len(), v.Float32s(floats, 0))
				v.Float64s(doubles, 0)
				for i, f := range floats {
					if f == f {
						require.Equal(t, doubles[i], float64(f), row.reason)
					}
				}
			}
		}
	}
}
