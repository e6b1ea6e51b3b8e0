//go:build unix

package mapfile_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/mapfile"
)

// TestSpecialFiles opens what would be endless, or would wait for ever.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	t.Chdir(dir)
	l, err := net.Listen("unix", "socket") // a short name: it has a limit
	require.NoError(t, err)
	defer l.Close()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(fifo, link))
	for _, name := range []string{fifo, link, "socket", "/dev/zero", "/dev/tty", "/dev/null"} {
		_, err := mapfile.Open(name)
		assert.ErrorIs(t, err, mapfile.ErrNotRegular, name)
		_, err = mapfile.Read(name, 10)
		assert.ErrorIs(t, err, mapfile.ErrNotRegular, name)
	}
}

// TestGuard reads a mapped file that was cut.
func TestGuard(t *testing.T) {
	name, _ := write(t, 4*mapfile.SmallFile)
	m, err := mapfile.Open(name)
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, os.Truncate(name, 0))
	var sum byte
	read := func() error {
		sum += m.Data[len(m.Data)-1]
		return nil
	}
	var fault *mapfile.Fault
	require.ErrorAs(t, mapfile.Guard(read), &fault)
	assert.ErrorContains(t, fault, "a mapped file became unreadable")
	own := &mapfile.Fault{File: "x", Err: os.ErrClosed}
	assert.ErrorIs(t, mapfile.Guard(func() error { panic(own) }), os.ErrClosed)
	assert.Equal(t, os.ErrExist, mapfile.Guard(func() error { return os.ErrExist }))
	assert.Panics(t, func() { _ = mapfile.Guard(func() error { panic("another") }) })
}
