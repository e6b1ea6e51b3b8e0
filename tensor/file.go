package tensor

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Named is a tensor with its name in the file; the name of the only tensor of a file may be empty.
type Named struct {
	Name string
	*Tensor
}

// File is an open tensor file. Its tensors are views of the file and must not be used after Close.
type File struct {
	Path     string
	Tensors  []Named           // in the order of the file
	Metadata map[string]string // of a safetensors or gguf header; nil for other formats
	Mapping  io.Closer         // what Close ends; nil if the content is in memory

	once  sync.Once
	index map[string]*Tensor // of Tensors, made by the first Lookup
}

// Close ends the mapping. A second Close does nothing.
func (f *File) Close() error {
	if f == nil || f.Mapping == nil {
		return nil
	}
	m := f.Mapping
	f.Mapping = nil
	return m.Close()
}

// Changed returns an error if the file is not as it was when it was opened: written, cut, replaced
// or removed meanwhile. Of a content in memory, and after Close, it knows nothing.
func (f *File) Changed() error {
	if m, ok := f.Mapping.(interface{ Changed() error }); ok {
		return m.Changed()
	}
	return nil
}

// Lookup returns the first tensor of that name. ok is false if there is none.
func (f *File) Lookup(name string) (t *Tensor, ok bool) {
	f.once.Do(func() {
		f.index = make(map[string]*Tensor, len(f.Tensors))
		for _, t := range f.Tensors {
			if _, ok := f.index[t.Name]; !ok {
				f.index[t.Name] = t.Tensor
			}
		}
	})
	t, ok = f.index[name]
	return t, ok
}

// Classes of a [FormatError], for [errors.Is].
var (
	// ErrTruncated: the file is shorter than its header says.
	ErrTruncated = errors.New("truncated file")
	// ErrCorrupt: the file contradicts itself or its format.
	ErrCorrupt = errors.New("corrupt file")
	// ErrUnsupported: the file is well-formed, but has something that cannot be compared (complex
	// numbers, sparse tensors, code).
	ErrUnsupported = errors.New("unsupported content")
	// ErrLFSPointer: the file is a git-lfs pointer, whose content was never fetched.
	ErrLFSPointer = errors.New("git-lfs pointer")
)

// FormatError says what is wrong with a tensor file, and where.
type FormatError struct {
	Format string // "safetensors", "torchpt", …
	File   string // path or name, as given
	Offset int64  // byte offset in the file; −1 if there is no such place
	Member string // record of an archive or tensor name, if there is one
	Msg    string // what was found and what was wanted
	Err    error  // ErrTruncated, ErrCorrupt, ErrUnsupported, ErrLFSPointer or an error of the system
}

func (e *FormatError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: open %q: ", e.Format, e.File)
	if e.Member != "" {
		fmt.Fprintf(&b, "%q: ", e.Member)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, "byte %d: ", e.Offset)
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }
