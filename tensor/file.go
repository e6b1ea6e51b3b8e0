package tensor

import (
	"errors"
	"sync"

	"github.com/goparity/goparity/internal/mapfile"
)

// Named is a tensor with its name in the file; the name of the only tensor of a file may be empty.
type Named struct {
	Name string
	*Tensor
}

// File is an open tensor file. Its tensors are views of the mapped file and must not be used after Close.
type File struct {
	Path     string
	Tensors  []Named           // in the order of the file
	Metadata map[string]string // of a safetensors header; nil elsewhere
	close    func() error

	once  sync.Once
	index map[string]*Tensor // of Tensors, made by the first Lookup
}

// Close unmaps the file. A second Close does nothing.
func (f *File) Close() error {
	if f == nil || f.close == nil {
		return nil
	}
	c := f.close
	f.close = nil
	return c()
}

// Lookup finds a tensor by its name, the first of several.
func (f *File) Lookup(name string) (*Tensor, bool) {
	f.once.Do(func() {
		f.index = make(map[string]*Tensor, len(f.Tensors))
		for _, t := range f.Tensors {
			if _, ok := f.index[t.Name]; !ok {
				f.index[t.Name] = t.Tensor
			}
		}
	})
	t, ok := f.index[name]
	return t, ok
}

// OpenFile maps a file and decodes it; it is what the Open of each format is made of. decode gets the whole content and fills
// f.Tensors with views of it. All errors are a [*FormatError].
func OpenFile(format, path string, decode func(f *File, data []byte) error) (*File, error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, &FormatError{Format: format, File: path, Offset: -1, Msg: err.Error(), Err: err}
	}
	f, err := DecodeFile(format, path, m.Data, decode)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	f.close = m.Close
	return f, nil
}

// DecodeFile is OpenFile for content that is in memory already; name is used in errors. The tensors are views of data.
func DecodeFile(format, name string, data []byte, decode func(f *File, data []byte) error) (*File, error) {
	f := &File{Path: name}
	if err := checkLFS(format, name, data); err != nil {
		return nil, err
	}
	if err := decode(f, data); err != nil {
		var fe *FormatError
		if !errors.As(err, &fe) {
			fe = &FormatError{Offset: -1, Msg: err.Error(), Err: ErrCorrupt}
		}
		fe.Format, fe.File = format, name
		return nil, fe
	}
	return f, nil
}
