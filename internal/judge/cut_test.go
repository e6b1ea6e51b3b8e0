package judge_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// TestCutWhileCompared cuts or rewrites a file of one side when the first pair has been compared.
// Both sides are equal, so that without a look at the file it would pass.
func TestCutWhileCompared(t *testing.T) {
	for _, elements := range []int{100, 1 << 16} { // a file that is read, and one that is mapped
		size := 128 + 4*elements
		for _, c := range []struct {
			name   string
			to     int
			reason string
		}{
			{"a.0-output.npy", size - 4, "an element, within the last page: the system says nothing"},
			{"a.0-output.npy", 0, "all of it, after it was compared"},
			{"z-output.npy", 100, "most of it, perhaps before it is compared"},
			{"z-output.npy", size, "nothing, but it is written again"},
		} {
			dir := t.TempDir()
			var runs []*dump.Run
			for _, side := range []string{"golden", "actual"} {
				for _, name := range []string{"a.0-output.npy", "a.1-output.npy", "z-output.npy"} {
					writeNpy(t, filepath.Join(dir, side, name), elements)
				}
				opened, err := dump.OpenCases(filepath.Join(dir, side), dump.Options{})
				require.NoError(t, err)
				r := opened[0]
				defer r.Close()
				runs = append(runs, r)
			}
			var once sync.Once
			file := filepath.Join(dir, "golden", c.name)
			cut := func(int64, int64) {
				once.Do(func() {
					assert.NoError(t, os.Truncate(file, int64(c.to)))
					assert.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)))
				})
			}
			_, err := judge.Compare(context.Background(), []judge.Case{{Name: "a", Golden: runs[0], Actual: runs[1]}},
				judge.Options{Progress: cut})
			var fault *mapfile.Fault
			require.ErrorAs(t, err, &fault, c.reason)
			assert.ErrorContains(t, err, c.name, c.reason)
		}
	}
}

// TestCutAfterCompare cuts a file before the report, which reads failing pairs again.
func TestCutAfterCompare(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a-output.npy")
	writeNpy(t, file, 1<<16)
	opened, err := dump.OpenCases(dir, dump.Options{})
	require.NoError(t, err)
	g := opened[0]
	defer g.Close()
	c := compareRuns(t, g, run("max", port{"a-output", wave(t, 3, 0, 1<<16)}))
	require.NotNil(t, c.Verdict)
	require.NoError(t, os.Truncate(file, 0))
	r := c.Report("x", true)
	assert.Equal(t, report.Error, r.Verdict, "what was compared is gone: no verdict")
	assert.Contains(t, r.Error, "became unreadable")
}

func writeNpy(t *testing.T, name string, elements int) {
	t.Helper()
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(i%17) - 3
	}
	x, err := tensor.Of(values, elements)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, npy.Write(f, x))
	require.NoError(t, f.Close())
}
