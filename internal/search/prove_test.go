package search_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// recurrent is the last state of four runs of h ← decay·h, h ← h + x·cos(h).
func recurrent() *program.Piece {
	var b builder
	row := []int{3, 8}
	h := b.value(program.Value{Record: 1, Shape: row})
	for i := range 4 {
		h = b.op("mul", row, "self", h, "other", b.weight("decay", 8))
		x := b.op("mul", row, "self", b.value(program.Value{Record: 2 + i, Shape: row}), "other", b.op("cos", row, "self", h))
		h = b.op("add", row, "self", h, "other", x, "alpha", 1)
		for k := range 4 {
			b.ops[4*i+k].Stack = min(k, 1)
		}
	}
	p := b.piece(h)
	p.Stacks, p.Frames = [][]int{{0}, {1}}, []program.Frame{{Line: 1}, {Line: 2}}
	return p
}

// gated is tanh(x + r·h), as a gated unit makes it.
func gated() *program.Piece {
	var b builder
	row := []int{3, 8}
	record := func(n int) program.ID { return b.value(program.Value{Record: n, Shape: row}) }
	sum := b.op("add", row, "self", record(1), "other", b.op("mul", row, "self", record(2), "other", record(3)), "alpha", 1)
	return b.piece(b.op("tanh", row, "self", sum))
}

// sparse are the sines of the places of the four best of six, in order.
func sparse() *program.Piece {
	var b builder
	places := []int{3, 4}
	b.op("topk", places, "self", b.op("sigmoid", []int{3, 6}, "self", b.value(program.Value{Record: 1, Shape: []int{3, 6}})), "k", 4, "dim", -1, "largest", true, "sorted", true)
	b.ops[1].Out = append(b.ops[1].Out, b.value(program.Value{Shape: places, DType: tensor.I64}))
	at := b.op("sort", places, "self", b.ops[1].Out[1], "dim", -1, "descending", false)
	b.ops[2].Out = append(b.ops[2].Out, b.value(program.Value{Shape: places, DType: tensor.I64}))
	b.values[at].DType = tensor.I64
	return b.piece(b.op("sin", places, "self", b.op("_to_copy", places, "self", at, "dtype", tensor.F32)))
}

// paired is rows of which every two neighbours are turned, and put side by side again by stack and a view.
func paired() *program.Piece {
	var b builder
	half, rows := []int{1, 6, 4}, []int{1, 6, 8}
	x := b.value(program.Value{Record: 1, Shape: rows})
	cos, sin := b.value(program.Value{Record: 2, Shape: []int{6, 4}}), b.value(program.Value{Record: 3, Shape: []int{6, 4}})
	cut := func(from int) program.ID {
		return b.op("slice", half, "self", x, "dim", 2, "start", from, "end", 8, "step", 2)
	}
	u, w := cut(0), cut(1)
	mul := func(a, by program.ID) program.ID { return b.op("mul", half, "self", a, "other", by) }
	re := b.op("sub", half, "self", mul(u, cos), "other", mul(w, sin), "alpha", 1)
	im := b.op("add", half, "self", mul(w, cos), "other", mul(u, sin), "alpha", 1)
	both := b.op("stack", []int{1, 6, 4, 2}, "tensors", []program.ID{re, im}, "dim", -1)
	return b.piece(b.op("tanh", rows, "self", b.op("view", rows, "self", both, "size", rows)))
}

// An edit is found again, proven, and nothing else is named.
func TestProves(t *testing.T) {
	for _, tt := range []struct {
		piece            *program.Piece
		text, id, reason string
	}{
		{recurrent(), "the state is empty again behind run 2 of the loop", "ssm/state", "a scan in chunks that begins anew"},
		{gated(), "add before mul", "edit/order", "the second operand is made of two"},
		{paired(), "what goes into view, as 2×4 → 4×2, and back behind it", "rope/layout", "halves are turned, where the reference turns neighbours"},
		{sparse(), "0, 1, 2 and so on in place of sort", "rope/offset", "and not 0 times the scores, after which the first ones are chosen"},
	} {
		r := found(t, tt.piece, nil, planted(t, tt.piece, nil, tt.text))
		assert.Equal(t, tt.text, r.Fits[0].Text, tt.reason)
		assert.Equal(t, tt.id, edit.Label(tt.piece, r.Fits[0].Edit), tt.reason)
		assert.True(t, r.Proven, tt.reason)
		for _, other := range r.Also {
			assert.NotContains(t, other.Text, "0 times the result of sigmoid", tt.reason)
		}
	}
}
