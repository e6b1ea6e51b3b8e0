package dump_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// TestManyFiles opens more files than are kept in memory: the others are read when their tensors
// are. All are one file with many names.
func TestManyFiles(t *testing.T) {
	const files = 5000 // of 16 kB, 80 MB in all
	dir := t.TempDir()
	values := make([]float32, 4000)
	for i := range values {
		values[i] = float32(i)
	}
	x, err := tensor.Of(values, 4, 1000)
	require.NoError(t, err)
	first := filepath.Join(dir, "m.0-output.npy")
	f, err := os.Create(first)
	require.NoError(t, err)
	require.NoError(t, npy.Write(f, x))
	require.NoError(t, f.Close())
	for i := range files - 1 {
		require.NoError(t, os.Link(first, filepath.Join(dir, fmt.Sprintf("m.%d-output.npy", i+1))))
	}
	r, err := dump.Open(dir, dump.Options{})
	require.NoError(t, err)
	defer r.Close()
	require.Len(t, r.Entries, files)
	for i, e := range r.Entries {
		require.Equal(t, float64(i%4000), e.Tensor.At(i%4000), e.Layer)
	}
	require.NoError(t, r.Changed())
	require.NoError(t, os.Truncate(first, 15000))
	var fault *mapfile.Fault
	require.ErrorAs(t, r.Changed(), &fault)
	last := r.Entries[files-1].Tensor
	runtime.GC() // what was read last may be in memory still
	err = mapfile.Guard(func() error { last.At(0); return nil })
	require.ErrorAs(t, err, &fault, "it is read again, and not as it was")
	assert.Contains(t, fault.File, "-output.npy")
}
