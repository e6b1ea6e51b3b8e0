// Package mapfile opens regular files: small ones are read, large ones mapped into memory if the
// system can do that, and of very many files the bytes are read when they are needed. It also replaces files
// and folders.
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
	// Kept says that Data lives until Close. If not, too many files are open: its owner calls
	// Release when the file is decoded, and reads what is needed later by Later.
	Kept bool

	name, path string // as given, and absolute
	size       int64
	modified   time.Time
	inode      inode
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
	m := &File{name: name, path: path, size: st.Size(), modified: st.ModTime(), inode: inodeOf(st)}
	if m.size > smallFile && m.mapped(f) {
		return m, nil
	}
	return m, m.readAll(f)
}

// readAll reads the file, and keeps it if all that are kept have no more than maxRead bytes.
func (m *File) readAll(f *os.File) error {
	m.Data = make([]byte, m.size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, m.size), m.Data); err != nil {
		return m.fault(err)
	}
	if m.Kept = take(&bytesRead, m.size, maxRead); m.Kept {
		m.end = func() error { bytesRead.Add(-m.size); return nil }
	}
	return nil
}

// mapped maps the file, if the system can, and keeps it if no more than maxMapped are kept.
func (m *File) mapped(f *os.File) bool {
	m.Kept = take(&mappings, 1, maxMapped)
	release := func() {
		if m.Kept {
			mappings.Add(-1)
		}
	}
	data, unmap, err := mmap(f, int(m.size))
	if err != nil {
		release()
		return false
	}
	leave := enter(data)
	m.Data, m.end = data, func() error { leave(); release(); return unmap() }
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
// meanwhile. One that was removed or replaced by another is the same if it is kept: who has it open
// still sees it.
func (m *File) Changed() error {
	st, err := os.Stat(m.path)
	switch {
	case m.Kept && (errors.Is(err, fs.ErrNotExist) || err == nil && inodeOf(st) != m.inode):
		return nil
	case err != nil:
		return m.fault(err)
	}
	return m.sameAs(st)
}

// inode tells files apart where the system numbers them.
type inode [2]uint64

func (m *File) sameAs(st os.FileInfo) error {
	switch {
	case inodeOf(st) != m.inode:
		return m.fault(errors.New("it was replaced after it was opened"))
	case st.Size() != m.size:
		return m.fault(fmt.Errorf("it has %d bytes, %d when it was opened", st.Size(), m.size))
	case !st.ModTime().Equal(m.modified):
		return m.fault(fmt.Errorf("it was written at %s, after it was opened", st.ModTime().Format(time.StampMilli)))
	}
	return nil
}

func (m *File) fault(err error) error { return &Fault{File: m.name, Err: err} }

// ReadAhead asks the system to read a part of Data that is not in memory, and does not wait for it.
// On Windows it does nothing.
func ReadAhead(data []byte) { readAhead(data) }
