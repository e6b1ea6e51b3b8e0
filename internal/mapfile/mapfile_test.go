package mapfile_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/mapfile"
)

func write(t *testing.T, size int) (name string, data []byte) {
	t.Helper()
	data = make([]byte, size)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	name = filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name, data
}

// TestOpen reads small and large files.
func TestOpen(t *testing.T) {
	for _, r := range []struct {
		size   int
		crowd  bool
		reason string
	}{
		{0, false, "empty"},
		{100, false, "read"},
		{mapfile.SmallFile + 1, false, "mapped"},
		{mapfile.SmallFile + 1, true, "read, for too many are mapped"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			name, data := write(t, r.size)
			if r.crowd {
				defer mapfile.Crowd()()
			}
			before := mapfile.Mapped()
			m, err := mapfile.Open(name)
			require.NoError(t, err)
			assert.Equal(t, r.reason == "mapped", mapfile.Mapped() > before)
			assert.True(t, bytes.Equal(data, m.Data))
			require.NoError(t, m.Changed())
			require.NoError(t, m.Close())
			require.NoError(t, m.Close(), "a second Close does nothing")
			assert.Equal(t, before, mapfile.Mapped(), "what was taken is given back")
		})
	}
}

// TestChanged changes an open file in several ways.
func TestChanged(t *testing.T) {
	for _, r := range []struct {
		change func(t *testing.T, name string)
		gone   bool // the file itself is as it was
		reason string
	}{
		{func(t *testing.T, name string) { require.NoError(t, os.Truncate(name, 99)) }, false, "cut by a byte"},
		{func(t *testing.T, name string) { require.NoError(t, os.Truncate(name, 1000)) }, false, "grown"},
		{func(t *testing.T, name string) { require.NoError(t, os.Remove(name)) }, true, "removed"},
		{func(t *testing.T, name string) {
			other, _ := write(t, 100)
			require.NoError(t, os.Rename(other, name))
		}, true, "replaced"},
		{func(t *testing.T, name string) {
			require.NoError(t, os.Chtimes(name, time.Time{}, time.Now().Add(time.Hour)))
		}, false, "written again with as many bytes"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			name, _ := write(t, 100)
			m, err := mapfile.Open(name)
			require.NoError(t, err)
			defer m.Close()
			r.change(t, name)
			if r.gone {
				require.NoError(t, m.Changed(), "what is open is still that file")
				return
			}
			var fault *mapfile.Fault
			require.ErrorAs(t, m.Changed(), &fault)
			assert.Equal(t, name, fault.File)
			assert.ErrorContains(t, fault, name+" became unreadable")
		})
	}
}

// TestRead has files of many kinds. None of them makes it wait.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, size int64) string {
		name = filepath.Join(dir, name)
		f, err := os.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		require.NoError(t, f.Close())
		return name
	}
	link := func(to, name string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.Symlink(to, name))
		return name
	}
	small := file("small", 10)
	const size = "at most 10 are read"
	for _, r := range []struct {
		name   string
		is     error
		says   string
		reason string
	}{
		{small, nil, "", "as many bytes as are read"},
		{link(small, "link"), nil, "", "a link to a file is one"},
		{file("large", 11), nil, size, "a byte more"},
		{file("sparse", 100<<30), nil, size, "it is refused by its size, before it is read"},
		{dir, mapfile.ErrNotRegular, "", "a folder"},
		{link("loop", "loop"), os.ErrInvalid, "", "a link to itself"},
		{filepath.Join(dir, "none"), fs.ErrNotExist, "", "nothing"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			data, err := mapfile.Read(r.name, 10)
			switch {
			case r.says != "":
				require.ErrorContains(t, err, r.says)
			case r.is == os.ErrInvalid: // the systems have several errors for it
				require.Error(t, err)
			case r.is != nil:
				require.ErrorIs(t, err, r.is)
			default:
				require.NoError(t, err)
				assert.Len(t, data, 10)
			}
		})
	}
	f, err := mapfile.Reader(small, 10)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(small, 20))
	_, err = io.Copy(io.Discard, f)
	require.ErrorContains(t, err, size, "a file that grows while it is read")
	require.NoError(t, f.Close())
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, []byte("new"), 0o644))
	require.NoError(t, os.WriteFile(to, []byte("what was there"), 0o644))
	require.NoError(t, mapfile.Copy(to, from))
	data, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, "new", string(data))
	assert.ErrorIs(t, mapfile.Copy(to, dir), mapfile.ErrNotRegular)
	hash, err := mapfile.Hash(to)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), hash)
	_, err = mapfile.Hash(dir)
	assert.ErrorIs(t, err, mapfile.ErrNotRegular)
}
