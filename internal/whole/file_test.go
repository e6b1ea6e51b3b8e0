package whole_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/whole"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	say := func(text string, fail error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		}
	}
	require.NoError(t, whole.File(path, 0o600, say("old", nil)))
	failed := errors.New("half of it")
	require.ErrorIs(t, whole.File(path, 0o600, say("ne", failed)), failed)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(got), "a failed write leaves the file as it was")
	require.NoError(t, whole.File(path, 0o600, say("new", nil)))
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new", string(got))

	require.Error(t, whole.File(filepath.Join(dir, "none", "x"), 0o600, say("", nil)), "no such folder")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.Error(t, whole.File(filepath.Join(dir, "folder"), 0o600, say("", nil)), "a folder is not replaced")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing else is left")
}
