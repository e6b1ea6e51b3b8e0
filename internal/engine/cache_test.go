package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// A second run compiles nothing, whatever its prompt, its length and its number of steps.
func TestFullLiveCompilesOnce(t *testing.T) {
	interpreter := live(t)
	j := engine.Job{Engine: engine.MAX, Model: engine.Model{Path: tinyLlama(t, interpreter), Task: "text-generation"},
		Cases: []engine.Case{{Name: "a", TokenIDs: [][]int{{72, 101, 108}}}}}
	first := run(t, interpreter, j)
	cache := ownCache(t)
	before := compiled(t, cache)
	require.NotEmpty(t, before, "MAX keeps its graphs in its cache")
	j.Cases = []engine.Case{{Name: "b", TokenIDs: [][]int{{5, 6, 7, 8, 9, 10, 11}}, Steps: 3},
		{Name: "c", Prompts: []string{"hello"}}}
	second := run(t, interpreter, j)
	assert.Equal(t, before, compiled(t, cache))
	t.Logf("compile: %.1f s, then %.1f s", first.Runs[0].Info.Seconds["compile"],
		second.Runs[0].Info.Seconds["compile"])
}

// ownCache gives this test a copy of MAX's cache, since other processes may write to the user's at
// any time.
func ownCache(t *testing.T) string {
	t.Helper()
	from, err := engine.CompileCache(os.Getenv)
	require.NoError(t, err)
	to := t.TempDir()
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				rel, _ := filepath.Rel(from, path)
				file := filepath.Join(to, rel)
				err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644))
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file of another process
		}
		return err
	}))
	t.Setenv("MODULAR_MAX_CACHE_DIR", to)
	return to
}

// compiled lists the graphs in MAX's cache.
func compiled(t *testing.T, cache string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() &&
			strings.Contains(path, string(filepath.Separator)+"mef"+string(filepath.Separator)) {
			files = append(files, path)
		}
		return err
	}))
	return files
}
