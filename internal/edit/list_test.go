package edit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// One kind that cannot read a piece does not take the others with it.
func TestListSkipsAKind(t *testing.T) {
	values := []program.Value{{Record: 1, Shape: []int{2}, DType: tensor.F32}, {Shape: []int{2}, DType: tensor.F32}}
	ops := []program.Op{{Name: "silu", Full: "aten.silu", Layer: "act", Stack: -1, Args: program.Args{{Name: "self", Value: program.ID(0)}},
		Out: []program.ID{1}}}
	p := &program.Piece{Program: (&program.Program{}).With(values, ops), Out: 1, Origin: []int{0}}
	base, err := replay.NewBase(context.Background(), p, func(*program.Value) (*replay.Array, error) {
		return replay.Of(tensor.F32, []int{2}, []float64{1, -2})
	}, replay.Mode{})
	require.NoError(t, err)
	want, skipped := edit.List(base, nil, nil)
	require.NotEmpty(t, want)
	require.Zero(t, skipped)

	undo := edit.With(func() { _ = ops[len(ops)] })
	got, skipped := edit.List(base, nil, nil)
	undo()
	assert.Equal(t, 1, skipped)
	assert.Len(t, got, len(want))

	defer edit.With(func() { panic(&mapfile.Fault{File: "golden"}) })()
	assert.Panics(t, func() { edit.List(base, nil, nil) }, "a file that is gone ends all")
}
