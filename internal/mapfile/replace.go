package mapfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file next to path, and moves it to path when it is complete and on the disk: else a
// crash may leave an empty file under that name. After an error path is not changed.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Chmod(perm), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Swap moves the folder from to to, where another folder may be. That one is renamed to old, a free
// name on the same disk, which the caller removes; between the two renames there is nothing at to.
// If from cannot be moved, the old folder is moved back.
func Swap(from, to, old string) error {
	absent := os.Rename(to, old)
	if absent != nil && !errors.Is(absent, fs.ErrNotExist) {
		return absent
	}
	err := os.Rename(from, to)
	if err != nil && absent == nil {
		err = errors.Join(err, os.Rename(old, to))
	}
	return err
}
