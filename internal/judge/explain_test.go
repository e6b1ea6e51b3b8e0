package judge_test

import (
	"testing"

	"github.com/goparity/goparity/internal/toy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A failing row of the report says which rows of its tensor are wrong.
func TestExplainedRows(t *testing.T) {
	g := wave(t, 1, 0, 16, 64)
	values := make([]float64, g.Len())
	for i := range values {
		values[i] = g.At(i)
		if i/64 >= 10 {
			values[i] = -values[i]
		}
	}
	c := compareRuns(t, run("torch", port{"m.a-output", g}), run("max", port{"m.a-output", toy.Of(t, values, 16, 64)}))
	l := c.Report("toy", true).Layers[0]
	require.NotNil(t, l.Rows)
	assert.Equal(t, 16, l.Rows.N)
	require.Len(t, l.Rows.RelL2, 16)
	assert.Zero(t, l.Rows.RelL2[9])
	assert.InDelta(t, 2, float64(l.Rows.RelL2[10]), 1e-9)
	require.NotNil(t, l.Histogram)
	assert.GreaterOrEqual(t, l.Histogram.Equal, 640)
	found := false
	for _, line := range l.Detail {
		found = found || line == "wrong: all rows from 10 on, of 16; off by 2 or more there, by 0 at most elsewhere"
	}
	assert.True(t, found, "%q", l.Detail)
}
