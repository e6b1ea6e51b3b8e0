// Package mapfile opens regular files: small ones are read, large ones mapped into memory if the
// system can do that and not too many are. It also replaces files and folders.
package mapfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// File is the content of an open file. It holds no file descriptor.
type File struct {
	// Data is the content. It is read-only: writing to it may crash. It is gone after Close.
	Data []byte

	name, path string // as given, and absolute
	size       int64
	modified   time.Time
	inode      inode
	unmap      func() error // nil if the content was read
}

// mappings is how many files are mapped in the whole process.
var mappings atomic.Int64

// Open opens a regular file; the error for anything else (a folder, a pipe, a device) comes at
// once.
func Open(name string) (*File, error) {
	f, st, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	m := &File{name: name, path: path, size: st.Size(), modified: st.ModTime(), inode: inodeOf(st)}
	if m.size > smallFile && m.mapped(f) {
		return m, nil
	}
	m.Data = make([]byte, m.size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, m.size), m.Data); err != nil {
		return nil, m.fault(err)
	}
	return m, nil
}

// mapped maps the file, if the system can and no more than maxMapped are.
func (m *File) mapped(f *os.File) bool {
	if mappings.Add(1) <= maxMapped {
		if data, unmap, err := mmap(f, int(m.size)); err == nil {
			leave := enter(data)
			m.Data, m.unmap = data, func() error { leave(); mappings.Add(-1); return unmap() }
			return true
		}
	}
	mappings.Add(-1)
	return false
}

// Close ends Data. A second Close does nothing.
func (m *File) Close() error {
	unmap := m.unmap
	m.Data, m.unmap = nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}

// Changed returns an error if the file is not as it was when it was opened: it was written or cut
// meanwhile. One that was removed or replaced by another is the same: who has it open still sees it.
func (m *File) Changed() error {
	st, err := os.Stat(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && inodeOf(st) != m.inode:
		return nil
	case err != nil:
		return m.fault(err)
	case st.Size() != m.size:
		return m.fault(fmt.Errorf("it has %d bytes, %d when it was opened", st.Size(), m.size))
	case !st.ModTime().Equal(m.modified):
		return m.fault(fmt.Errorf("it was written at %s, after it was opened", st.ModTime().Format(time.StampMilli)))
	}
	return nil
}

// inode tells files apart where the system numbers them.
type inode [2]uint64

func (m *File) fault(err error) error { return &Fault{File: m.name, Err: err} }

// ReadAhead asks the system to read a part of Data that is not in memory, and does not wait for it.
// On Windows it does nothing.
func ReadAhead(data []byte) { readAhead(data) }
