// Package whole replaces files atomically, and folders: a reader of a file sees all of the old one or all of
// the new one.
package whole

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File writes a file next to path, and moves it to path when it is complete and on the disk: else a
// crash may leave an empty file under that name. After an error path is not changed.
func File(path string, perm fs.FileMode, write func(io.Writer) error) error {
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
