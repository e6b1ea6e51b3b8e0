package search_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/tensor"
)

const fedRows, fedFrom, fedTo = 7, 3, 6 // of the sequence, and what the forward pass fed

// fedAttention is causal attention of two heads over rotated queries and keys, fused or not.
func fedAttention(fused bool) *program.Piece {
	var b builder
	heads, flat := []int{1, 2, fedRows, 4}, []int{2, fedRows, 4}
	record := func(n int, shape ...int) program.ID { return b.value(program.Value{Record: n, Shape: shape}) }
	q, k, v := record(1, heads...), record(2, heads...), record(3, heads...)
	cos, sin := record(4, 1, 1, fedRows, 4), record(5, 1, 1, fedRows, 4)
	turned := func(x program.ID) program.ID {
		half := []int{1, 2, fedRows, 2}
		a := b.op("slice", half, "self", x, "dim", 3, "start", 0, "end", 2, "step", 1)
		c := b.op("slice", half, "self", x, "dim", 3, "start", 2, "end", 4, "step", 1)
		r := b.op("cat", heads, "tensors", []program.ID{b.op("neg", half, "self", c), a}, "dim", 3)
		return b.op("add", heads, "self", b.op("mul", heads, "self", x, "other", cos), "other", b.op("mul", heads, "self", r, "other", sin), "alpha", 1)
	}
	q, k = turned(q), turned(k)
	if fused {
		return b.piece(b.op("scaled_dot_product_attention", heads, "query", q, "key", k, "value", v, "attn_mask", nil, "dropout_p", 0.0, "is_causal", true))
	}
	square, scores := []int{2, fedRows, fedRows}, []int{1, 2, fedRows, fedRows}
	view := func(x program.ID, shape []int) program.ID { return b.op("view", shape, "self", x, "size", shape) }
	s := b.op("bmm", square, "self", view(q, flat), "mat2", b.op("transpose", []int{2, 4, fedRows}, "self", view(k, flat), "dim0", 1, "dim1", 2))
	s = b.op("mul", scores, "self", view(s, scores), "other", 0.5)
	s = b.op("add", scores, "self", s, "other", record(6, 1, 1, fedRows, fedRows), "alpha", 1)
	w := view(b.op("_softmax", scores, "self", s, "dim", -1), square)
	return b.piece(view(b.op("bmm", flat, "self", w, "mat2", view(v, flat)), heads))
}

// fedLoad returns the records of a sequence; another one's queries, keys and values are others.
func fedLoad(other int) replay.Load {
	return func(v *program.Value) (*replay.Array, error) {
		row := func(f func(r, c int) float64) (*replay.Array, error) {
			n := v.Shape[len(v.Shape)-1]
			x := make([]float64, fedRows*n)
			for i := range x {
				x[i] = f(i/n, i%n)
			}
			return replay.Of(tensor.F32, v.Shape, x)
		}
		angle := func(r, c int) float64 { return float64(r) * []float64{1, 0.1}[c%2] }
		switch v.Record {
		case 4:
			return row(func(r, c int) float64 { return math.Cos(angle(r, c)) })
		case 5:
			return row(func(r, c int) float64 { return math.Sin(angle(r, c)) })
		case 6:
			return row(func(r, c int) float64 { return map[bool]float64{true: 0, false: -1e9}[c <= r] })
		}
		at := *v
		at.Record += 20 * other
		return load(&at)
	}
}

// fedSite is such an attention, of which one forward pass is wrong, beside another sequence and padding.
func fedSite(t *testing.T, fused bool) *search.Site {
	t.Helper()
	p := fedAttention(fused)
	beside, err := replay.NewBase(t.Context(), p, fedLoad(1), replay.Mode{})
	require.NoError(t, err)
	return &search.Site{Piece: p, Load: fedLoad(0), Fed: &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo, Padding: 2,
		Others: []edit.Other{{ID: "state/sequence", Text: "sequence 1", Base: beside, Len: fedRows, Cached: fedRows},
			{ID: "mask/padding", Text: "padding", Base: beside, Len: 2, Left: true}}}}
}

// fedCounted is rows of a table by positions that count the sequence, of which one forward pass is wrong.
func fedCounted() *search.Site {
	var b builder
	shape := []int{1, fedRows, 8}
	at := b.value(program.Value{Data: constant(0, 1, 2, 3, 4, 5, 6), Shape: []int{1, fedRows}, DType: tensor.I64})
	rows := b.op("embedding", shape, "weight", b.weight("wpe.weight", 20, 8), "indices", at)
	p := b.piece(b.op("add", shape, "self", b.value(program.Value{Record: 1, Shape: shape}), "other", rows, "alpha", 1))
	return &search.Site{Piece: p, Load: load, Fed: &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo}}
}

// Whatever a forward pass gets wrong of those before it, the search finds it, or what is the same in its rows.
func TestFindsStates(t *testing.T) {
	for _, fused := range []bool{false, true} {
		site := fedSite(t, fused)
		p, fed := site.Piece, site.Fed
		base, err := replay.NewBase(t.Context(), p, site.Load, replay.Mode{})
		require.NoError(t, err)
		compared := func(a *replay.Array) (x []float64) {
			all := a.Floats()
			for head := range 2 {
				x = append(x, all[(head*fedRows+fedFrom)*4:(head*fedRows+fedTo)*4]...)
			}
			return x
		}
		tried := map[string]int{}
		for _, e := range listed(base, nil, fed) {
			if e.Kind != "state" || tried[e.ID] == 4 {
				continue
			}
			a, err := base.Run(e.Patch)
			require.NoError(t, err, e.Text)
			r, err := search.Find(t.Context(), &search.Site{Piece: p, Load: fedLoad(0), Fed: fed, Off: off(compared(a), compared), Numbers: compared})
			require.NoError(t, err)
			if r.Off <= 1 {
				continue // the rows do not show it
			}
			tried[e.ID]++
			if assert.NotEmpty(t, r.Fits, "fused %t: %s", fused, e.Text) {
				assert.LessOrEqual(t, r.Fits[0].Cost, e.Cost, "%s is found as %s", e.Text, r.Fits[0].Text)
				assert.Contains(t, edit.IDs(), edit.Label(p, r.Fits[0].Edit), e.Text)
			}
		}
		for _, id := range []string{"state/chunk", "state/slot", "state/position", "state/sequence", "mask/padding"} {
			assert.NotZero(t, tried[id], "fused %t: %s: %v", fused, id, tried)
		}
	}
}

// A forward pass of several tokens that does what a step of one does with a convolution: found, and written by hand.
func TestPassesAsOneStep(t *testing.T) {
	var b builder
	shape, all := []int{1, 4, fedRows}, []int{1, 4, fedRows + 2}
	x, gate := b.value(program.Value{Record: 1, Shape: shape}), b.value(program.Value{Record: 2, Shape: shape})
	c := b.op("convolution", all, "input", x, "weight", b.weight("c.weight", 4, 1, 3), "bias", nil, "stride", []int{1}, "padding", []int{2},
		"dilation", []int{1}, "transposed", false, "output_padding", []int{0}, "groups", 4)
	c = b.op("slice", shape, "self", c, "dim", 2, "start", 0, "end", fedRows, "step", 1)
	p := b.piece(b.op("mul", shape, "self", gate, "other", c))
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	fed := &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo}
	written := edit.Written{Layer: "layer", Op: 3, Kind: "state", What: "all rows of the forward pass are its last"}
	_, err = written.Find(base, nil, nil, 2)
	require.Error(t, err, "no pass is wrong")
	e, err := written.Find(base, nil, fed, 2)
	require.NoError(t, err)
	assert.Empty(t, e.Patch.Late, "a program holds its numbers")
	r, err := search.Find(t.Context(), func() *search.Site { s := site(t, p, e.Patch); s.Fed = fed; return s }())
	require.NoError(t, err)
	require.NotEmpty(t, r.Fits)
	assert.Equal(t, e.Text, r.Fits[0].Text)
	assert.Equal(t, "state/chunk", edit.Label(p, r.Fits[0].Edit))
	assert.True(t, r.Proven)
}
