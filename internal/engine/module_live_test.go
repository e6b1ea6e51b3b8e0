package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// MAX loads a module once for all cases that have the same graph and weights, and each case has
// what it has alone.
func TestModuleLoadsOnceLive(t *testing.T) {
	interpreter := live(t)
	oracle, err := filepath.Abs(filepath.Join("testdata", "oracle_shared.py"))
	require.NoError(t, err)
	of := func(name string, ids ...int) engine.Case { return engine.Case{Name: name, TokenIDs: [][]int{ids}} }
	run := func(cases ...engine.Case) (r *engine.Result, loads int) {
		log := filepath.Join(t.TempDir(), "log")
		r, err := engine.Run(t.Context(), engine.Job{Engine: engine.MAX, Device: engine.CPU, Model: engine.Model{Oracle: oracle, Task: "module"},
			Encoding: "float32", Out: filepath.Join(t.TempDir(), "dump"), Cases: cases},
			engine.Options{Python: interpreter, LogFile: log})
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return r, strings.Count(string(text), "loads a graph")
	}
	cases := []engine.Case{of("a", 1, 2, 3), of("b", 4, 5, 6), of("weights", 4, 5, 6), of("sharp", 4, 5, 6),
		of("long", 4, 5, 6, 7), of("again", 7, 8, 9)}
	all, loads := run(cases...)
	assert.Equal(t, 4, loads, "a, b and again are the same; another weight, constant or size is another graph")
	for i, c := range cases {
		if c.Name != "b" && c.Name != "sharp" {
			continue // a compilation takes long
		}
		alone, _ := run(c)
		require.Len(t, all.Runs[i].Entries, len(alone.Runs[0].Entries), c.Name)
		for k, e := range alone.Runs[0].Entries {
			want, _ := e.Tensor.Bytes()
			got, _ := all.Runs[i].Entries[k].Tensor.Bytes()
			assert.Equal(t, e.Label(), all.Runs[i].Entries[k].Label())
			assert.Equal(t, want, got, "case %s, %s", c.Name, e.Label())
		}
	}
}
