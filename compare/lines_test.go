package compare_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// Lines are those of Explain, and the worst row is that of Tensors.
func TestLines(t *testing.T) {
	g, a := pairOf(t, tensor.F32, 7, 100)
	r, err := compare.Tensors(g, a, compare.Tolerance{})
	require.NoError(t, err)
	rows, columns, err := compare.Lines(g, a)
	require.NoError(t, err)
	require.Len(t, rows, 7)
	require.Len(t, columns, 100)
	d := explain(t, g, a, compare.Tolerance{})
	assert.Equal(t, d.Rows, rows)
	assert.Equal(t, d.Columns, columns)
	assert.InEpsilon(t, r.WorstRow.RelL2, rows[r.WorstRow.Index].RelL2, 1e-12)

	rows, columns, err = compare.Lines(of(t, []float64{1, 2}), of(t, []float64{1, nan}))
	require.NoError(t, err)
	assert.Empty(t, columns, "one row has no columns")
	assert.Equal(t, 1, rows[0].BadNonFinite)

	rows, columns, err = compare.Lines(of(t, nil), of(t, nil))
	require.NoError(t, err)
	assert.Empty(t, append(rows, columns...), "nothing has no lines")
	_, _, err = compare.Lines(of(t, []float64{1}), of(t, []float64{1, 2}))
	var shape *compare.ShapeError
	assert.ErrorAs(t, err, &shape)
}

func TestWalk(t *testing.T) {
	var seen [][3]float64
	require.NoError(t, compare.Walk(of(t, []float64{1, 2}), of(t, []float64{3, 4}), func(i int, g, a float64) {
		seen = append(seen, [3]float64{float64(i), g, a})
	}))
	assert.Equal(t, [][3]float64{{0, 1, 3}, {1, 2, 4}}, seen)
	assert.Error(t, compare.Walk(nil, of(t, []float64{1}), nil))
}

func TestPlacesOf(t *testing.T) {
	assert.Equal(t, "every 2nd row, 1–5", compare.PlacesOf([]bool{false, true, false, true, false, true}).Text("row"))
	assert.Equal(t, "no row", compare.PlacesOf(nil).Text("row"))
}
