// Package mapfile opens regular files: small ones are read, large ones mapped into memory if the
// system can do that, and of very many files the bytes are read when they are needed.
package mapfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// File is the content of an open file. It holds no file descriptor of its own.
type File struct {
	// Data is the content. It is read-only: writing to it may crash. It is gone after Close.
	Data []byte
	// Kept says that Data lives until Close. If not, too many files are open: its owner calls
	// Release when the file is decoded, and reads what is needed later by Later.
	Kept bool

	name, path string       // as given, and absolute
	opened     os.FileInfo  // as it was
	held       *os.File     // of OpenFile
	end        func() error // of what holds Data, nil for ordinary memory
	closed     atomic.Bool
}

// What the files that are kept take, of the whole process.
var mappings, bytesRead atomic.Int64

// take adds n to a sum unless the sum then exceeds a limit.
func take(sum *atomic.Int64, n, limit int64) bool {
	if sum.Add(n) <= limit {
		return true
	}
	sum.Add(-n)
	return false
}

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
	return load(f, &File{name: name, path: path, opened: st})
}

// OpenFile is Open for a file that is open already, and stays open until the File is closed. It
// reads the same file even where there is another one at its path by now.
func OpenFile(f *os.File) (*File, error) {
	st, err := f.Stat()
	if err == nil {
		err = regular(f.Name(), st)
	}
	if err != nil {
		return nil, err
	}
	return load(f, &File{name: f.Name(), opened: st, held: f})
}

// load reads or maps m from f.
func load(f *os.File, m *File) (*File, error) {
	size := m.opened.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("%s has %d bytes, too many for this platform", m.name, size)
	}
	if size > smallFile && m.mapped(f) {
		return m, nil
	}
	m.Data = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), m.Data); err != nil {
		return nil, m.fault(err)
	}
	if m.Kept = take(&bytesRead, size, maxRead); m.Kept {
		m.end = func() error { bytesRead.Add(-size); return nil }
	}
	return m, nil
}

// mapped maps the file, if the system can.
func (m *File) mapped(f *os.File) bool {
	limit := int64(maxMapped)
	if m.opened.Size() >= hugeFile {
		limit *= 2
	}
	m.Kept = take(&mappings, 1, limit)
	release := func() {
		if m.Kept {
			mappings.Add(-1)
		}
	}
	data, unmap, err := mmap(f, int(m.opened.Size()))
	if err != nil {
		release()
		return false
	}
	m.Data, m.end = data, func() error { release(); return unmap() }
	return true
}

// Release ends Data. The file stays open for Later and Changed.
func (m *File) Release() error {
	m.Data = nil
	if m.end == nil {
		return nil
	}
	end := m.end
	m.end = nil
	return end()
}

// Close ends Data and all that Later returned. A second Close does nothing.
func (m *File) Close() error {
	m.closed.Store(true)
	return m.Release()
}

// Changed returns an error if the file is not as it was when it was opened: it was written or cut
// meanwhile. One that was removed, or replaced by another, did not change: what was read is of one
// file.
func (m *File) Changed() error {
	st, err := m.stat()
	if m.held == nil && (err != nil || !os.SameFile(st, m.opened)) {
		return nil
	}
	if err != nil {
		return m.fault(err)
	}
	return m.sameAs(st)
}

func (m *File) stat() (os.FileInfo, error) {
	if m.held != nil {
		return m.held.Stat()
	}
	return os.Stat(m.path)
}

func (m *File) sameAs(st os.FileInfo) error {
	switch was := m.opened; {
	case !os.SameFile(st, was):
		return m.fault(errors.New("another file took its place after it was opened"))
	case st.Size() != was.Size():
		return m.fault(fmt.Errorf("it has %d bytes, %d when it was opened", st.Size(), was.Size()))
	case !st.ModTime().Equal(was.ModTime()):
		return m.fault(fmt.Errorf("it was written at %s, after it was opened", st.ModTime().Format(time.StampMilli)))
	}
	return nil
}

func (m *File) fault(err error) error { return &Fault{File: m.name, Err: err} }

// ReadAhead asks the system to read a part of Data that is not in memory, and does not wait for it.
// On Windows it does nothing.
func ReadAhead(data []byte) { readAhead(data) }
