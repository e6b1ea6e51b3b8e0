package replay_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// TestFromTensor reads every type, aligned or not, contiguous or not.
func TestFromTensor(t *testing.T) {
	half := []byte{0x00, 0x3c, 0x00, 0xbc, 0x00, 0x40, 0x01, 0x00} // float16 1, −1, 2, 2⁻²⁴
	brain := []byte{0x80, 0x3f, 0x80, 0xbf, 0x00, 0x40, 0x20, 0x41}
	single := []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf, 0, 0, 0, 0x40, 0, 0, 0x20, 0x41}
	for _, r := range []struct {
		dtype  tensor.DType
		data   []byte
		want   []float64
		reason string
	}{
		{tensor.F16, half, []float64{1, -1, 2, 0x1p-24}, "float16"},
		{tensor.BF16, brain, []float64{1, -1, 2, 10}, "bfloat16"},
		{tensor.F32, single, []float64{1, -1, 2, 10}, "float32"},
		{tensor.Bool, []byte{0, 1, 2, 0}, []float64{0, 1, 1, 0}, "bools"},
		{tensor.I8, []byte{0, 1, 0xff, 0x80}, []float64{0, 1, -1, -128}, "bytes"},
		{tensor.F8E4M3FN, []byte{0x38, 0xb8, 0x40, 0}, []float64{1, -1, 2, 0}, "float8"},
	} {
		for offset := range 2 {
			data := append(make([]byte, offset), r.data...)[offset:]
			x, err := tensor.New(r.dtype, []int{2, 2}, data)
			require.NoError(t, err)
			turned, err := x.Transpose()
			require.NoError(t, err)
			for _, v := range []struct {
				t    *tensor.Tensor
				want []float64
			}{{x, r.want}, {turned, []float64{r.want[0], r.want[2], r.want[1], r.want[3]}}} {
				a, err := replay.FromTensor(v.t)
				require.NoError(t, err)
				assert.Equal(t, v.want, a.Floats(), r.reason)
				assert.Equal(t, r.dtype, a.DType(), r.reason)
				if !r.dtype.IsFloat() {
					continue
				}
				p := pieceOf(t, []program.Value{input(tensor.F32, 2, 2), made(tensor.F32, 2, 2)}, op("aten.neg.default", 1, "self", program.ID(0)))
				got, err := replay.Run(t.Context(), p, func(*program.Value) (*replay.Array, error) { return a, nil }, replay.Mode{})
				require.NoError(t, err)
				for i, w := range v.want {
					assert.InDelta(t, -w, got.Floats()[i], 0, "%s, taken as float32", r.reason)
				}
			}
		}
	}
}

// TestTensor gives numbers back as a file may have them.
func TestTensor(t *testing.T) {
	for _, r := range []struct {
		in, out tensor.DType
		x, want []float64
	}{
		{tensor.F64, tensor.F64, []float64{1. / 3, -2}, []float64{1. / 3, -2}},
		{tensor.BF16, tensor.F32, []float64{1. / 3, -2}, []float64{0.333984375, -2}},
		{tensor.Bool, tensor.Bool, []float64{0, 5}, []float64{0, 1}},
		{tensor.I16, tensor.I64, []float64{40000, -7.9}, []float64{40000 - 1<<16, -7}},
		{tensor.U8, tensor.I64, []float64{300, -1}, []float64{44, 255}},
		{tensor.I64, tensor.I64, []float64{1e300, -1 << 40}, []float64{-1 << 63, -1 << 40}},
	} {
		a, err := replay.Of(r.in, []int{2}, r.x)
		require.NoError(t, err)
		x, err := a.Tensor()
		require.NoError(t, err)
		assert.Equal(t, r.out, x.DType())
		assert.Equal(t, r.want, []float64{x.At(0), x.At(1)}, r.in.String())
	}
	_, err := replay.Of(tensor.F32, []int{3}, []float64{1, 2})
	assert.ErrorContains(t, err, "2 numbers for shape [3]")
}
