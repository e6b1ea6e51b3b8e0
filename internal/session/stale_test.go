package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/session"
)

// TestStaleOnce changes one key of a fixture: what is stale by it is told in one line for goldens and one for runs, not
// in one for each variant, case, run and path.
func TestStaleOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tinyllama")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../fixtures/tinyllama")))
	name := filepath.Join(dir, "fixture.yaml")
	yaml, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(string(yaml), "task: text-generation", "task: text-generation\n  max_layers: 4", 1)), 0o644))
	s, err := session.Start(session.Config{Fixtures: []string{dir}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var lines []string
	for _, p := range problems(s) {
		if p.Name == "parity:stale" {
			lines = strings.Split(p.Text, "\n")
		}
	}
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], "the goldens float32 of case hello, float64 of case hello are stale: model.max_layers is new: 4; renew them")
	assert.Contains(t, lines[1], "the recorded run max-cpu of case hello, hello (injected), hello@decode-3, hello@chunked-4, hello@batch, hello@repeat-2, "+
		"… and 1 more is stale: model.max_layers is new: 4; record it again")
}
