package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
)

// mapped is how many files in a folder this process has mapped.
func mapped(t *testing.T, dir string) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, dir) {
			n++
		}
	}
	return n
}

// TestCloseAll replays runs of one pass and along paths from one folder: all of them are closed with the session.
func TestCloseAll(t *testing.T) {
	const fixture = "../../fixtures/tinyllama"
	runs, err := store.OpenCases(filepath.Join(fixture, "runs", "max-cpu"), dump.Options{Unjudged: true})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, store.Update(t.Context(), dir, nil, func(*store.Store) (*store.Change, error) {
		c := &store.Change{}
		for _, r := range runs {
			c.Add = append(c.Add, store.Recording{Kept: store.Kept{Joined: r.Joined, Info: r.Info}, Run: r})
		}
		return c, nil
	}))
	require.NoError(t, dump.CloseAll(runs))
	s, err := session.Start(session.Config{Fixtures: []string{fixture}, Replay: dir})
	require.NoError(t, err)
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	assert.NotEmpty(t, s.Default().Paths(c))
	assert.Greater(t, mapped(t, dir), 10)
	require.NoError(t, s.Close())
	assert.Zero(t, mapped(t, dir))
}
