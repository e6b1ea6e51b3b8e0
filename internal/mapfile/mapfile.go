// Package mapfile opens regular files: small ones are read, large ones mapped into memory if the
// system can do that and not too many are. It also replaces files and folders.
package mapfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
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
			regions.Store(address(data), len(data))
			m.Data, m.unmap = data, func() error {
				regions.Delete(address(data))
				mappings.Add(-1)
				return unmap()
			}
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

// regions are the mapped files of the process: what lies in no one of them is ordinary memory.
var regions sync.Map // the address of the first byte → how many follow

func address(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }

// Forget lets the system take the memory of a part of a mapped file, which is read again when it is
// used; other bytes stay as they are. On Windows it does nothing.
func Forget(data []byte) {
	at := address(data)
	regions.Range(func(begin, n any) bool {
		b := begin.(uintptr)
		inside := at >= b && at-b <= uintptr(n.(int)) && uintptr(len(data)) <= uintptr(n.(int))-(at-b)
		if inside {
			forget(data)
		}
		return !inside
	})
}

// Fault says that an open file could not be read any more: it was truncated or replaced, or its
// disk failed.
type Fault struct {
	File string // "" if it is not known
	Err  error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s became unreadable (was it truncated or rewritten?): %v", cmp.Or(f.File, "a mapped file"), f.Err)
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Guard runs f and returns a [*Fault] if f read bytes of a file that are gone; without Guard the
// process would end. Guard does not recover from other panics.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Fault:
			err = r
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = &Fault{Err: r}
		default:
			panic(r)
		}
	}()
	return f()
}
