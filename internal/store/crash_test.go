package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/store"
)

var errCrash = errors.New("the machine is gone")

// fragile is a file system whose n-th operation fails: half of a write is done, and nothing of
// other operations. If dead, all later ones also fail, as after a crash.
type fragile struct {
	afero.Fs
	left int
	dead bool
}

func (f *fragile) fail() bool {
	f.left--
	return f.left == 0 || f.left < 0 && f.dead
}

func do[T any](f *fragile, op func() (T, error)) (T, error) {
	if f.fail() {
		var zero T
		return zero, errCrash
	}
	return op()
}

func (f *fragile) only(op func() error) error {
	if f.fail() {
		return errCrash
	}
	return op()
}

func (f *fragile) file(file afero.File, err error) (afero.File, error) {
	if err != nil {
		return nil, err
	}
	return &fragileFile{file, f}, nil
}

func (f *fragile) Create(name string) (afero.File, error) {
	return f.file(do(f, func() (afero.File, error) { return f.Fs.Create(name) }))
}

func (f *fragile) Open(name string) (afero.File, error) {
	return f.file(do(f, func() (afero.File, error) { return f.Fs.Open(name) }))
}

func (f *fragile) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	return f.file(do(f, func() (afero.File, error) { return f.Fs.OpenFile(name, flag, perm) }))
}

func (f *fragile) Stat(name string) (os.FileInfo, error) {
	return do(f, func() (os.FileInfo, error) { return f.Fs.Stat(name) })
}

func (f *fragile) Mkdir(name string, perm os.FileMode) error {
	return f.only(func() error { return f.Fs.Mkdir(name, perm) })
}

func (f *fragile) MkdirAll(name string, perm os.FileMode) error {
	return f.only(func() error { return f.Fs.MkdirAll(name, perm) })
}
func (f *fragile) Remove(name string) error { return f.only(func() error { return f.Fs.Remove(name) }) }
func (f *fragile) RemoveAll(name string) error {
	return f.only(func() error { return f.Fs.RemoveAll(name) })
}
func (f *fragile) Rename(a, b string) error { return f.only(func() error { return f.Fs.Rename(a, b) }) }

type fragileFile struct {
	afero.File
	fs *fragile
}

func (f *fragileFile) Write(p []byte) (int, error) {
	if f.fs.fail() {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errCrash
	}
	return f.File.Write(p)
}

func (f *fragileFile) Sync() error { return f.fs.only(f.File.Sync) }

func (f *fragileFile) Close() error {
	err := f.File.Close() // a file is closed in any case
	return f.fs.only(func() error { return err })
}

func (f *fragile) Chmod(name string, mode os.FileMode) error {
	return f.only(func() error { return f.Fs.Chmod(name, mode) })
}

func TestUpdateSurvivesEveryFailure(t *testing.T) {
	places(t, func(t *testing.T, disk afero.Fs, dir string) {
		step := 1
		if _, real := disk.(*afero.OsFs); real {
			step = 7 // operations on a real disk are slow
		}
		old := keep("float32", ports("a", "0", "l", f32(t, 1, 2), "0", "m", f32(t, 3)), ports("b", "0", "l", f32(t, 4)))
		now := keep("float32", ports("a", "0", "l", f32(t, 5, 6), "0", "m", f32(t, 7)), ports("c", "0", "l", f32(t, 8)))
		failures := map[string]int{}
		for _, dead := range []bool{true, false} {
			for n := 1; ; n += step {
				require.NoError(t, disk.RemoveAll(filepath.Dir(dir)))
				update(t, disk, dir, old)
				broken := &fragile{Fs: disk, left: n, dead: dead}
				err := store.UpdateOn(context.Background(), broken, dir, now)
				if broken.left > 0 {
					require.NoError(t, err, "all operations succeeded")
					require.Greater(t, n, 20, "there were failures before")
					break
				}
				state := stateOf(t, disk, dir)
				if err == nil { // a failure that does not matter
					require.Equal(t, "new", state, "operation %d", n)
				}
				failures[state]++

				// The next update works, and leaves nothing of the failed one.
				update(t, disk, dir, now)
				require.Equal(t, "new", stateOf(t, disk, dir), "operation %d", n)
				require.Len(t, names(t, disk, dir), 4, "operation %d", n)
			}
		}
		assert.Positive(t, failures["old"])
		assert.Positive(t, failures["new"], "failures after the rename were also tried")
	})
}

// stateOf reads the whole store and returns whether it is old or new. Nothing in between is
// allowed; files that no one lists may be there.
func stateOf(t *testing.T, disk afero.Fs, dir string) string {
	t.Helper()
	s := open(t, disk, dir)
	problems, err := s.Verify(context.Background())
	require.NoError(t, err)
	for _, p := range problems {
		require.True(t, p.Extra, "%s", p)
	}
	values := map[string]float64{}
	for _, k := range s.Runs() {
		run, err := s.Run(k)
		require.NoError(t, err)
		for _, e := range run.Entries {
			values[k.Info.Case+" "+e.Layer] = e.Tensor.At(0)
		}
	}
	require.NoError(t, s.Close())
	if values["a l"] == 1 {
		require.Equal(t, map[string]float64{"a l": 1, "a m": 3, "b l": 4}, values)
		return "old"
	}
	require.Equal(t, map[string]float64{"a l": 5, "a m": 7, "b l": 4, "c l": 8}, values)
	return "new"
}
