package golden

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/mapfile"
)

// disk is the part of a file system that a store needs. Tests replace it with one in memory, and
// with one whose operations fail.
type disk interface {
	Open(name string) (file, error)
	Create(name string) (file, error) // fails if the name exists
	Stat(name string) (fs.FileInfo, error)
	Walk(root string, visit filepath.WalkFunc) error
	MkdirAll(name string) error
	Rename(from, to string) error
	RemoveAll(name string) error
}

type file interface {
	io.ReadWriteCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Sync() error
}

// system is the file system of the operating system.
type system struct{}

func (system) Open(name string) (file, error) {
	if st, err := os.Stat(name); err == nil && st.IsDir() { // to sync it
		return opened(os.Open(name))
	}
	return opened(mapfile.Regular(name))
}

func (system) Create(name string) (file, error) {
	return opened(os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644))
}

// opened keeps a nil *os.File from becoming an interface that is not nil.
func opened(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (system) Stat(name string) (fs.FileInfo, error)           { return os.Stat(name) }
func (system) Walk(root string, visit filepath.WalkFunc) error { return filepath.Walk(root, visit) }
func (system) MkdirAll(name string) error                      { return os.MkdirAll(name, 0o755) }
func (system) Rename(from, to string) error                    { return os.Rename(from, to) }
func (system) RemoveAll(name string) error                     { return os.RemoveAll(name) }

func readFile(d disk, name string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > mapfile.MaxListing {
		return nil, &mapfile.SizeError{Name: name, Size: st.Size(), Limit: mapfile.MaxListing}
	}
	return io.ReadAll(mapfile.Limit(f, name, mapfile.MaxListing))
}

func exists(d disk, name string) (bool, error) {
	_, err := d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
