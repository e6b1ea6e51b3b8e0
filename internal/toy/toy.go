// Package toy makes tensors and runs for tests, opens recorded programs, and keeps what tests say in files.
package toy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Port is one tensor of a run: "model.layers.0-output".
type Port = struct {
	Label  string
	Tensor *tensor.Tensor
}

// Run is a run of one step of the case "short".
func Run(engine string, ports ...Port) *dump.Run {
	var entries []dump.Entry
	for _, p := range ports {
		layer, name := label.Split(p.Label)
		entries = append(entries, dump.Entry{Step: "0", Layer: layer, Port: name, Tensor: p.Tensor})
	}
	return dump.New(engine, dump.Info{Engine: engine, Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
}

// Of is tensor.Of, which must not fail.
func Of[T tensor.Element](t testing.TB, values []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

// Wave is a tensor of numbers that do not repeat; scale and shift tell one from another.
func Wave(t testing.TB, scale, shift float64, shape ...int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * (float64(i*i%31)/7 - 2 + shift + float64(i)/50))
	}
	return Of(t, v, shape...)
}
