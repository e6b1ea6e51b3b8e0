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
	p := piece(map[bool]string{false: "fed", true: "fed-fused"}[fused])
	beside, err := replay.NewBase(t.Context(), p, fedLoad(1), replay.Mode{})
	require.NoError(t, err)
	return &search.Site{Piece: p, Load: fedLoad(0), Fed: &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo, Padding: 2,
		Others: []edit.Other{{ID: "state/sequence", Text: "sequence 1", Base: beside, Len: fedRows, Cached: fedRows},
			{ID: "mask/padding", Text: "padding", Base: beside, Len: 2, Left: true}}}}
}

// fedCounted counts the sequence, of which one forward pass is wrong.
func fedCounted() *search.Site {
	return &search.Site{Piece: piece("fed-counted"), Load: load, Fed: fedRange()}
}

// fedRange is the forward pass.
func fedRange() *edit.Fed {
	return &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo}
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
	p := piece("fed-convolved")
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	fed := fedRange()
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
