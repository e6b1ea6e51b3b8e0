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
