package golden

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/whole"
)

// disk is the part of a file system that a store needs. Tests replace it with one in memory, and
// with one whose operations fail.
type disk interface {
	whole.FS
	Open(name string) (file, error)
	Create(name string) (file, error) // fails if the name exists
	// Steady calls read until no one replaced the folder dir meanwhile.
	Steady(dir string, read func() error) error
}

type file interface {
	io.ReadWriteCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Sync() error
}

// system is the file system of the operating system.
type system struct{ whole.OS }

func (system) Open(name string) (file, error) { return opened(mapfile.Regular(name)) }

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

func (system) Steady(dir string, read func() error) error { return whole.Steady(dir, read) }

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

// snapshot is a disk that has the files of a store as they were when it was opened, whatever is at
// their paths by now.
type snapshot struct {
	disk
	folder *whole.Sight
	files  map[string]*os.File // by path
}

// hold opens a folder; its files come with add.
func hold(d disk, dir string) *snapshot {
	return &snapshot{disk: d, folder: whole.See(dir), files: map[string]*os.File{}}
}

// add keeps a file open. One that cannot be opened is looked for again when it is read, and its
// hash tells whether it is the right one; but where there are no descriptors left, none of the
// others is kept either, and nothing else can be opened.
func (s *snapshot) add(name string) error {
	f, err := s.disk.Open(name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fmt.Errorf("%w: a store keeps a file open for each of its passes: raise the limit, ulimit -n", err)
	}
	if real, ok := f.(*os.File); err == nil && ok {
		s.files[name] = real
	} else if err == nil {
		f.Close()
	}
	return nil
}

func (s *snapshot) Open(name string) (file, error) {
	if f := s.files[name]; f != nil {
		return &held{file: f}, nil
	}
	return s.disk.Open(name)
}

func (s *snapshot) close() error {
	errs := []error{s.folder.Close()}
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	clear(s.files)
	return errors.Join(errs...)
}

// onSystem returns a file of the operating system, nil for one of another disk.
func onSystem(f file) *os.File {
	switch f := f.(type) {
	case *os.File:
		return f
	case *held:
		return f.file
	}
	return nil
}

// held reads a file that a snapshot keeps open, from its beginning.
type held struct {
	file *os.File
	at   int64
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.file.ReadAt(p, h.at)
	h.at += int64(n)
	return n, err
}

func (h *held) ReadAt(p []byte, at int64) (int, error) { return h.file.ReadAt(p, at) }
func (h *held) Stat() (fs.FileInfo, error)             { return h.file.Stat() }
func (h *held) Write([]byte) (int, error)              { return 0, fs.ErrPermission }
func (h *held) Sync() error                            { return nil }
func (h *held) Close() error                           { return nil }
