package search_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// A piece may be made of values that the candidate did not record, but would have.
func TestFindsWhatWasMadeElsewhere(t *testing.T) {
	rows := []int{3, 8}
	piece := func() *program.Piece {
		var b builder
		x := b.value(program.Value{Record: 1, Shape: rows})
		return b.piece(b.op("mul", rows, "self", b.op("tanh", rows, "self", x), "other", b.value(program.Value{Record: 2, Shape: rows})))
	}()
	of := func(record int, shape ...int) edit.Weight {
		return edit.Weight{Name: "x + attn(x)", Shape: shape, DType: tensor.F32, Layer: "block", Code: "model.py:3",
			Made: func() (*replay.Array, error) { return load(&program.Value{Record: record, Shape: shape}) }}
	}
	instead := func(w edit.Weight, record int) edit.Weight { w.For = record; return w }
	gone := of(7, 3, 8)
	gone.Made = func() (*replay.Array, error) { return nil, &replay.OpaqueError{Reason: errors.ErrUnsupported.Error()} }
	var b builder
	given := b.piece(b.value(program.Value{Record: 2, Shape: rows}))
	for _, tt := range []struct {
		piece            *program.Piece
		others           []edit.Weight
		text, id, reason string
	}{
		{piece, []edit.Weight{of(7, 3, 8)}, "tanh takes x + attn(x) in the place of what was recorded", "residual/source", "another sum"},
		{piece, []edit.Weight{gone, instead(of(7, 3, 8), 2)}, "mul takes x + attn(x) in the place of what was recorded", "residual/source",
			"in the place of the second record alone; what cannot be made is no edit"},
		{piece, []edit.Weight{of(7, 3, 1)}, "the result is multiplied with x + attn(x)", "edit/term", "a number for each row"},
		{given, []edit.Weight{instead(of(7, 3, 8), 2)}, "the result is x + attn(x)", "residual/source", "what a layer is given, had it been made of that"},
	} {
		r := found(t, tt.piece, tt.others, planted(t, tt.piece, tt.others[len(tt.others)-1:], tt.text))
		assert.Equal(t, tt.text, r.Fits[0].Text, tt.reason)
		assert.Equal(t, tt.id, edit.Label(tt.piece, r.Fits[0].Edit), tt.reason)
		assert.Equal(t, "model.py:3", r.Fits[0].Code, tt.reason)
		assert.True(t, r.Proven, tt.reason)
	}
}
