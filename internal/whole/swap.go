package whole

import (
	"errors"
	"io/fs"
	"strconv"
)

// Renamer is what Swap needs of a file system.
type Renamer interface {
	Rename(from, to string) error
}

// tries is how often Swap tries again after another process was faster.
const tries = 10

// Swap moves the folder from to to, where another folder may be. That one is renamed to old, a free
// name on the same disk, which the caller removes; between the two renames there is nothing at to.
// If from cannot be moved, the old folder is moved back. If another process does the same at this
// moment, the last one wins; the folder that it replaced becomes old with a number.
func Swap(d Renamer, from, to, old string) error {
	for try := 0; ; try++ {
		aside := old
		if try > 0 {
			aside += strconv.Itoa(try)
		}
		absent := d.Rename(to, aside)
		if absent != nil && !errors.Is(absent, fs.ErrNotExist) {
			return absent
		}
		err := d.Rename(from, to)
		if err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) && try < tries {
			continue
		}
		if absent == nil {
			err = errors.Join(err, d.Rename(aside, to))
		}
		return err
	}
}
