package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/session"
)

// A failing row says where it is wrong, row by row; what is drawn of it comes from there.
func TestExplainedRows(t *testing.T) {
	g := wave(t, 1, 0, 16, 64)
	values := make([]float64, g.Len())
	for i := range values {
		values[i] = g.At(i)
		if i/64 >= 10 {
			values[i] = -values[i]
		}
	}
	c := compareRuns(t, run("torch", port{"m.a-output", g}), run("max", port{"m.a-output", of(t, values, 16, 64)}))
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

// What is saved is what was compared; names of cases and steps do not leave the folder.
func TestSave(t *testing.T) {
	r := run("max", port{"m.a-output", wave(t, 1, 0, 2, 8)}, port{"m.b-output", wave(t, 1, 1, 2, 8)})
	evil := *r
	evil.Info.Case = "../../evil"
	parent := t.TempDir()
	dir := filepath.Join(parent, "a", "saved")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, session.Save(dir, []*dump.Run{r, &evil}))
	again, err := dump.OpenCases(dir, dump.Options{})
	require.NoError(t, err)
	defer dump.CloseAll(again)
	require.Len(t, again, 2)
	assert.Equal(t, "../../evil", again[1].Info.Case)
	for _, back := range again {
		require.Len(t, back.Entries, 2)
		for i, e := range back.Entries {
			assert.Equal(t, r.Entries[i].Label(), e.Label())
			assert.Equal(t, content(t, r.Entries[i].Tensor), content(t, e.Tensor))
		}
	}
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing was written outside")
}
