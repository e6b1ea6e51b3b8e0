package safetensors_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

func of[T int32 | float32](t *testing.T, values []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

func TestWriteUnique(t *testing.T) {
	a := of(t, []float32{1, 2, 3, 4}, 2, 2)
	transposed, err := a.Transpose()
	require.NoError(t, err)
	tensors := []tensor.Named{
		{Name: "a", Tensor: a},
		{Name: "same", Tensor: of(t, []float32{1, 2, 3, 4}, 2, 2)},
		{Name: "shape", Tensor: of(t, []float32{1, 2, 3, 4}, 4)},
		{Name: "dtype", Tensor: of(t, []int32{0x3f800000, 0x40000000, 0x40400000, 0x40800000}, 2, 2)},
		{Name: "view", Tensor: transposed},
		{Name: "copy", Tensor: of(t, []float32{1, 3, 2, 4}, 2, 2)},
		{Name: "empty", Tensor: of(t, []float32{}, 0, 3)},
		{Name: "nothing", Tensor: of(t, []float32{}, 0, 3)},
	}
	var b bytes.Buffer
	ranges, err := safetensors.WriteUnique(&b, tensors, map[string]string{"case": "x"})
	require.NoError(t, err)

	f, err := safetensors.Decode("f", b.Bytes())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"case": "x"}, f.Metadata)
	var names []string
	for _, n := range f.Tensors {
		names = append(names, n.Name)
	}
	assert.Equal(t, []string{"a", "shape", "dtype", "view", "empty"}, names,
		"equal tensors are stored once; another shape or dtype is not equal")
	for i, want := range []string{"a", "a", "shape", "dtype", "view", "view", "empty", "empty"} {
		r := ranges[i]
		assert.Equal(t, want, r.Name, tensors[i].Name)
		stored, ok := f.Lookup(r.Name)
		require.True(t, ok)
		assert.Equal(t, stored.Place().Offset, r.Offset, tensors[i].Name)
		assert.Equal(t, tensors[i].Shape(), stored.Shape())
		assert.Equal(t, tensors[i].Copy().String(), stored.String())
		data, ok := tensors[i].Copy().Bytes()
		require.True(t, ok)
		assert.Equal(t, data, b.Bytes()[r.Offset:r.Offset+r.Length], tensors[i].Name)
		hash, err := safetensors.Hash(tensors[i].Tensor)
		require.NoError(t, err)
		assert.Equal(t, hash, r.SHA256)
	}
}

func TestWriteUniqueRefused(t *testing.T) {
	a := of(t, []float32{1}, 1)
	_, err := safetensors.WriteUnique(&bytes.Buffer{}, []tensor.Named{{Name: "a", Tensor: a}, {Name: "a", Tensor: a}},
		nil)
	assert.ErrorContains(t, err, `two tensors are named "a"`)
	_, err = safetensors.WriteUnique(full{}, []tensor.Named{{Name: "a", Tensor: a}}, nil)
	assert.ErrorIs(t, err, errFull)
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
