// Package mapfile returns the bytes of a file, mapped into memory if the system can do that, or
// else read.
package mapfile

import (
	"fmt"
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
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
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
