package whole_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/whole"
)

// plain is a file system that cannot exchange folders, and whose rename of a number fails.
type plain struct {
	whole.FS
	fails, n int
}

func (p *plain) Rename(from, to string) error {
	if p.n++; p.n == p.fails {
		return errors.New("broken")
	}
	return os.Rename(from, to)
}

func fill(text string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644) }
}

func content(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "file"))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return string(data)
}

func locked(t *testing.T, dir string, do func() error) error {
	t.Helper()
	unlock, err := whole.Lock(context.Background(), dir, nil)
	require.NoError(t, err)
	defer unlock()
	return do()
}

func TestFolder(t *testing.T) {
	failed := errors.New("half of it")
	for _, tt := range []struct {
		disk   whole.FS
		build  func(string) error
		want   string
		fails  bool
		reason string
	}{
		{whole.OS{}, fill("new"), "new", false, "exchanged at one stroke, where the system can"},
		{&plain{FS: whole.OS{}}, fill("new"), "new", false, "two renames"},
		{whole.OS{}, func(dir string) error { return errors.Join(fill("new")(dir), failed) }, "old", true, "it cannot be filled"},
		{&plain{FS: whole.OS{}, fails: 1}, fill("new"), "old", true, "the first rename fails"},
		{&plain{FS: whole.OS{}, fails: 2}, fill("new"), "old", true, "the second rename fails"},
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "x")
		require.NoError(t, locked(t, dir, func() error { return whole.Folder(whole.OS{}, dir, fill("old")) }), "there was none")
		require.Equal(t, "old", content(t, dir))
		err := locked(t, dir, func() error { return whole.Folder(tt.disk, dir, tt.build) })
		assert.Equal(t, tt.fails, err != nil, tt.reason)
		assert.Equal(t, tt.want, content(t, dir), tt.reason)
		left, err := os.ReadDir(parent)
		require.NoError(t, err)
		assert.Len(t, left, 1, "%s: nothing else is left", tt.reason)
	}
}

// What a process leaves that was killed between two renames is found, and the next one cleans up.
func TestKilledBetweenRenames(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "x")
	require.NoError(t, whole.Folder(whole.OS{}, dir, fill("old")))
	work := filepath.Dir(whole.LockFile(dir))
	left := func() {
		require.NoError(t, os.MkdirAll(filepath.Join(work, "new-1"), 0o755))
		require.NoError(t, os.Rename(dir, filepath.Join(work, "old")))
		require.NoError(t, os.WriteFile(whole.LockFile(dir), []byte("pid 1"), 0o644))
	}
	left()
	assert.Equal(t, "old", content(t, whole.Find(whole.OS{}, dir)))
	require.NoError(t, locked(t, dir, func() error {
		data, err := os.ReadFile(filepath.Join(work, ".gitignore"))
		assert.Equal(t, "*\n", string(data), "git does not see it")
		return errors.Join(err, whole.Recover(whole.OS{}, dir))
	}))
	assert.Equal(t, "old", content(t, dir))
	assert.NoDirExists(t, work)
	left()
	require.NoError(t, locked(t, dir, func() error { return whole.Folder(whole.OS{}, dir, fill("new")) }))
	assert.Equal(t, "new", content(t, whole.Find(whole.OS{}, dir)))
	assert.NoDirExists(t, work)
	assert.Equal(t, dir, whole.Find(whole.OS{}, dir))
	none := filepath.Join(parent, "none")
	assert.Equal(t, none, whole.Find(whole.OS{}, none), "there is no such folder at all")
}

func TestTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	real := filepath.Join(dir, "real")
	require.NoError(t, os.Mkdir(real, 0o755))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no links on this system: ", err)
	}
	assert.Equal(t, real, whole.Target(link), "the link stays, and two links have one lock")
	assert.Equal(t, real, whole.Target(real+"/"))
	assert.Equal(t, filepath.Join(dir, "none"), whole.Target(filepath.Join(dir, "none")))
}

func TestSteady(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "x")
	require.NoError(t, whole.Folder(whole.OS{}, dir, fill("a")))
	var seen []string
	again := errors.New("seen")
	err := whole.Steady(dir, func() error {
		seen = append(seen, content(t, dir))
		if len(seen) < 3 {
			require.NoError(t, whole.Folder(whole.OS{}, dir, fill("bcd"[len(seen)-1:len(seen)])))
		}
		return again
	})
	require.ErrorIs(t, err, again, "the error of the last read")
	assert.Equal(t, []string{"a", "b", "c"}, seen, "read until no one replaced it meanwhile")

	n := 0
	require.NoError(t, whole.Steady(filepath.Join(parent, "late"), func() error {
		if n++; n == 1 {
			return os.Mkdir(filepath.Join(parent, "late"), 0o755)
		}
		return nil
	}))
	assert.Equal(t, 2, n, "the folder came while it was read")
}
