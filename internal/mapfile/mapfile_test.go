package mapfile_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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

// TestKept reads small and large files, kept and not.
func TestKept(t *testing.T) {
	for _, r := range []struct {
		size   int
		crowd  bool
		reason string
	}{
		{0, false, "empty"},
		{0, true, "empty files take nothing"},
		{100, false, "read"},
		{100, true, "read again"},
		{mapfile.SmallFile + 1, false, "mapped"},
		{3 * mapfile.SmallFile, true, "mapped for a while, then read"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			name, data := write(t, r.size)
			if r.crowd {
				defer mapfile.Crowd()()
			}
			files, held := mapfile.InUse()
			m, err := mapfile.Open(name)
			require.NoError(t, err)
			assert.Equal(t, !r.crowd || r.size == 0, m.Kept)
			assert.True(t, bytes.Equal(data, m.Data))
			assert.Nil(t, m.Later(make([]byte, 8)), "no part of the file")
			if r.size > 0 && !m.Kept {
				later := m.Later(m.Data[7:50])
				require.NoError(t, m.Release())
				assert.Equal(t, data[7:50], later())
				first := &later()[0]
				assert.Same(t, first, &later()[0], "bytes that are in use are not read twice")
				runtime.KeepAlive(first)
				require.NoError(t, m.Changed())
				require.NoError(t, m.Close())
				err := mapfile.Guard(func() error { runtime.GC(); later(); return nil })
				var fault *mapfile.Fault
				assert.ErrorAs(t, err, &fault, "closed")
			}
			require.NoError(t, m.Close())
			require.NoError(t, m.Close(), "a second Close does nothing")
			filesNow, heldNow := mapfile.InUse()
			assert.Equal(t, [2]int64{files, held}, [2]int64{filesNow, heldNow}, "what was taken is given back")
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
		{func(t *testing.T, name string) { require.NoError(t, os.Truncate(name, 0)) }, false, "emptied"},
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
			kept, err := mapfile.Open(name)
			require.NoError(t, err)
			defer kept.Close()
			defer mapfile.Crowd()()
			m, err := mapfile.Open(name)
			require.NoError(t, err)
			defer m.Close()
			later := m.Later(m.Data[:10])
			require.NoError(t, m.Release())
			require.NoError(t, m.Changed())
			r.change(t, name)
			var fault *mapfile.Fault
			require.ErrorAs(t, m.Changed(), &fault)
			assert.Equal(t, name, fault.File)
			require.ErrorAs(t, mapfile.Guard(func() error { later(); return nil }), &fault)
			assert.ErrorContains(t, fault, name+" became unreadable")
			if r.gone {
				assert.NoError(t, kept.Changed(), "what is in memory is still that file")
			} else {
				assert.ErrorAs(t, kept.Changed(), &fault)
			}
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
	var size *mapfile.SizeError
	for _, r := range []struct {
		name   string
		is     error
		as     any
		reason string
	}{
		{small, nil, nil, "as many bytes as are read"},
		{link(small, "link"), nil, nil, "a link to a file is one"},
		{file("large", 11), nil, &size, "a byte more"},
		{file("sparse", 100<<30), nil, &size, "it is refused by its size, before it is read"},
		{dir, mapfile.ErrNotRegular, nil, "a folder"},
		{link("loop", "loop"), os.ErrInvalid, nil, "a link to itself"},
		{filepath.Join(dir, "none"), fs.ErrNotExist, nil, "nothing"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			data, err := mapfile.Read(r.name, 10)
			switch {
			case r.as != nil:
				require.ErrorAs(t, err, r.as)
				assert.ErrorContains(t, err, "at most 10 are read")
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
	require.ErrorAs(t, err, &size, "a file that grows while it is read")
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
}
