package tensor

import (
	"io"
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
