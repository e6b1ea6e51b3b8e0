package mapfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
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
			assert.Equal(t, r.is == nil, mapfile.IsFile(r.name))
			assert.Equal(t, r.name == dir, mapfile.IsFolder(r.name))
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

// What is forgotten is read again; memory that is no file's stays as it is.
func TestForget(t *testing.T) {
	name, data := write(t, 40*mapfile.SmallFile)
	m, err := mapfile.Open(name)
	require.NoError(t, err)
	for _, part := range [][]byte{m.Data, m.Data[5:], m.Data[5000:20000], m.Data[:1], nil, m.Data[len(m.Data)-9000:]} {
		mapfile.Forget(part)
		assert.True(t, bytes.Equal(data, m.Data))
	}
	own := bytes.Repeat([]byte{7}, 1<<20)
	mapfile.Forget(own)
	assert.True(t, bytes.Equal(bytes.Repeat([]byte{7}, 1<<20), own))
	require.NoError(t, m.Close())
	mapfile.Forget(own)
	assert.Equal(t, byte(7), own[0])
}

func TestJSONError(t *testing.T) {
	for _, tt := range []struct{ data, want, reason string }{
		{"{\n \"a\": 1,\n oops}", "line 3: ", "syntax"},
		{"{\n \"a\": \"x\"}", "line 2: ", "type"},
		{"{\n \"a\": ", "line 2: ", "truncated"},
	} {
		var v struct{ A int }
		err := json.Unmarshal([]byte(tt.data), &v)
		assert.ErrorContains(t, mapfile.JSONError([]byte(tt.data), err), tt.want, tt.reason)
	}
	other := errors.New("x")
	assert.Equal(t, other, mapfile.JSONError(nil, other), "an error without a position is not changed")
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	say := func(text string, fail error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		}
	}
	require.NoError(t, mapfile.Replace(path, 0o600, say("old", nil)))
	failed := errors.New("half of it")
	require.ErrorIs(t, mapfile.Replace(path, 0o600, say("ne", failed)), failed)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(got), "a failed write leaves the file as it was")
	require.NoError(t, mapfile.Replace(path, 0o600, say("new", nil)))
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new", string(got))

	require.Error(t, mapfile.Replace(filepath.Join(dir, "none", "x"), 0o600, say("", nil)), "no such folder")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.Error(t, mapfile.Replace(filepath.Join(dir, "folder"), 0o600, say("", nil)), "a folder is not replaced")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing else is left")
}

func TestSwap(t *testing.T) {
	for _, tt := range []struct {
		had, made bool
		want      string
		reason    string
	}{
		{true, true, "new", "the new folder takes its place"},
		{false, true, "new", "there was no folder"},
		{true, false, "old", "the new one cannot be moved: the old one is moved back"},
		{false, false, "", "there is no old folder to move back"},
	} {
		dir := t.TempDir()
		write := func(folder, text string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, folder, "file"), []byte(text), 0o644))
		}
		if tt.had {
			write("to", "old")
		}
		if tt.made {
			write("from", "new")
		}
		err := mapfile.Swap(filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "old"))
		assert.Equal(t, tt.made, err == nil, tt.reason)
		got, _ := os.ReadFile(filepath.Join(dir, "to", "file"))
		assert.Equal(t, tt.want, string(got), tt.reason)
	}
}
