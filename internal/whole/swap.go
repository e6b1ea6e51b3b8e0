package whole

import (
	"errors"
	"io/fs"
	"os"
)

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
