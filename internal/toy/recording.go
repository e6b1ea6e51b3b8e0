package toy

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Recording is a program, the weights of its model, and what torch had at its ports.
type Recording struct {
	*program.Program
	Weights, Recorded *tensor.File
}

// Open opens the recording in a folder.
func Open(t testing.TB, folder string) *Recording {
	t.Helper()
	p, err := program.Read(filepath.Join(folder, "program.json"))
	require.NoError(t, err)
	r := &Recording{Program: p}
	for name, to := range map[string]**tensor.File{"weights": &r.Weights, "ports": &r.Recorded} {
		*to, err = safetensors.Open(filepath.Join(folder, name+".safetensors"))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, (*to).Close()) })
	}
	return r
}

// Record is what torch had at a port; ok is false where that was not recorded.
func (r *Recording) Record(i int) (*tensor.Tensor, bool) {
	q := &r.Ports[i]
	return r.Recorded.Lookup(q.Step + "/" + q.Layer + "-" + q.Name)
}

// Load finds what a piece takes from outside.
func (r *Recording) Load(v *program.Value) (*replay.Array, error) {
	var x *tensor.Tensor
	ok, err := true, error(nil)
	switch {
	case v.Record > 0:
		x, ok = r.Record(v.Record - 1)
	case v.Weight != "":
		x, ok = r.Weights.Lookup(v.Weight)
	case v.Input != "":
		x, err = r.Constant("input:" + v.Input)
	case v.Constant != "":
		x, err = r.Constant(v.Constant)
	default:
		x, err = tensor.New(v.DType, v.Shape, v.Data)
	}
	if err != nil || !ok {
		return nil, fmt.Errorf("%+v: not there: %w", v, err)
	}
	return replay.FromTensor(x)
}
