package golden_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor/npy"
)

// TestCutWhileImported makes goldens of a dump of which a file loses its last element while they
// are made. Memory that is mapped shows zeros there.
func TestCutWhileImported(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dump", "l-output.npy")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	values := make([]float32, 8000)
	values[7999] = 1
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, npy.Write(f, f32(t, values...)))
	require.NoError(t, f.Close())
	d, err := golden.OpenDump(filepath.Dir(file))
	require.NoError(t, err)
	defer d.Close()
	st, err := os.Stat(file)
	require.NoError(t, err)
	_, err = golden.Import(context.Background(), filepath.Join(dir, "golden"), golden.ImportOptions{
		Runs: map[string]*golden.Run{"a": d.Runs[""]},
		Keep: func(string, string) bool { return assert.NoError(t, os.Truncate(file, st.Size()-4)) },
	})
	var fault *mapfile.Fault
	require.ErrorAs(t, err, &fault)
	assert.ErrorContains(t, err, "l-output.npy")
	_, err = golden.Open(filepath.Join(dir, "golden"))
	require.ErrorIs(t, err, golden.ErrNotFound, "nothing was made")
}
