// Package mapfile returns the bytes of a file, mapped into memory if the system can do that, or
// else read.
package mapfile

import (
	"fmt"
	"io"
	"math"
	"os"
)

// File is the content of an open file. Data is read-only: writing to it crashes.
type File struct {
	Data  []byte
	unmap func() error
}

// Open maps the file. The descriptor is closed at once; the mapping lives until Close. If mapping
// fails (the system or the file system cannot do it, or there are too many mappings), the file is
// read instead.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return OpenFile(f)
}

// OpenFile is Open for a file that is open already, and stays open. It reads the same file even
// where there is another one at its path by now.
func OpenFile(f *os.File) (*File, error) {
	path := f.Name()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := st.Size()
	switch {
	case st.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file (%s)", path, st.Mode().Type())
	case size > math.MaxInt:
		return nil, fmt.Errorf("%s has %d bytes, too many for this platform", path, size)
	case size == 0:
		return &File{Data: []byte{}}, nil
	}
	if data, unmap, err := mmap(f, int(size)); err == nil {
		return &File{Data: data, unmap: unmap}, nil
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), data); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &File{Data: data}, nil
}

// Close ends the mapping; Data must not be used after it. A second Close does nothing.
func (f *File) Close() error {
	f.Data = nil
	if f.unmap == nil {
		return nil
	}
	unmap := f.unmap
	f.unmap = nil
	return unmap()
}

// ReadAhead asks the system to read a part of Data that is not in memory, and does not wait for it.
// On Windows it does nothing.
func ReadAhead(data []byte) { readAhead(data) }
