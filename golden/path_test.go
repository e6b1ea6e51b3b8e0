package golden_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
)

// A path that keeps goldens of its own, and one that shares those of one pass.
func TestPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "golden")
	along := func() *golden.Run {
		r := ports("m", "output", f32(t, 1), "m", "output", f32(t, 3))
		r.Ports[1].Step = "1"
		r.Path, r.Passes = "decode:1", json.RawMessage(`[[{"sequence":0,"from":0,"to":1}],[{"sequence":0,"from":1,"to":2}]]`)
		r.TokenIDs = json.RawMessage(`[[4,5]]`)
		return r
	}
	one := func() *golden.Run { return ports("m", "output", f32(t, 1, 2)) }
	figures := []golden.Path{{Variant: "float32", Case: "a", Path: "decode:1", Own: true, RowRelL2: 0.5, Limit: 1e-6, Label: "m-output"},
		{Variant: "float32", Path: "batch", RowRelL2: 1e-7, Limit: 1e-6}}
	importPaths := func(runs map[string]*golden.Run, paths []golden.Path) {
		_, err := golden.Import(t.Context(), dir, golden.ImportOptions{Runs: runs, Paths: paths, Now: day})
		require.NoError(t, err)
	}
	importPaths(map[string]*golden.Run{"a": one(), "a@decode-1": along(), "b": one()}, figures)
	s, err := golden.Open(dir)
	require.NoError(t, err)
	assert.Equal(t, figures, s.Paths())
	assert.Equal(t, []string{"0", "1"}, s.Steps("float32", figures[0].Golden()))
	p, err := s.Pass("float32", "a@decode-1", "1")
	require.NoError(t, err)
	assert.Equal(t, "decode:1", p.Provenance.Path)
	assert.JSONEq(t, string(along().Passes), string(p.Provenance.Passes))
	assert.Empty(t, verify(t, s))
	require.NoError(t, s.Close())

	_, err = golden.Import(t.Context(), dir, golden.ImportOptions{Runs: map[string]*golden.Run{"c": along()}})
	assert.ErrorContains(t, err, `run along "decode:1"`, "no golden of a case")

	importPaths(map[string]*golden.Run{"a": one()}, nil)
	s, err = golden.Open(dir)
	require.NoError(t, err)
	assert.Empty(t, s.Paths(), "what was measured of a goes with it, and of all cases together, too")
	assert.Empty(t, s.Steps("float32", "a@decode-1"), "and so do the path's own goldens")
	assert.Len(t, s.Steps("float32", "b"), 1)
	require.NoError(t, s.Close())

	importPaths(map[string]*golden.Run{"a": one(), "a@decode-1": along()}, figures)
	gone, err := golden.Prune(t.Context(), dir, golden.PruneOptions{Apply: true,
		Keep: func(_, caseName, _ string) bool { return caseName == "a" || caseName == "b" }})
	require.NoError(t, err)
	assert.Equal(t, []string{"float32/a@decode-1.0.safetensors", "float32/a@decode-1.1.safetensors"}, gone)
	_, err = os.Stat(filepath.Join(dir, gone[0]))
	assert.ErrorIs(t, err, os.ErrNotExist)
	s, err = golden.Open(dir)
	require.NoError(t, err)
	assert.Equal(t, figures[1:], s.Paths())
	require.NoError(t, s.Close())
}
