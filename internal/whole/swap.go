package whole

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// Renamer is what Swap needs of a file system.
type Renamer interface {
	Rename(from, to string) error
}

// OS is the operating system's.
type OS struct{}

// Rename is os.Rename.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// tries is how often Swap begins again where another process was faster.
const tries = 10

// Swap puts a folder in the place of another one, which may be absent. What was there becomes old,
// a free name on the same disk that the caller removes; for the moment between two renames there is
// nothing at to. If from cannot be moved, the old folder comes back. Where another process does the
// same at this moment, the last one wins; what it replaced becomes old with a number.
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
