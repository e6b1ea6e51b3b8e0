package mapfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/mapfile"
)

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
