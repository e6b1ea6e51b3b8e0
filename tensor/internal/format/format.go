// Package format has what Open and Decode of all file formats share; they differ in how the content
// is decoded.
package format

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// A Decoder sets f.Tensors to views of data, the whole content of a file. An error that is not a
// [*tensor.FormatError] counts as [tensor.ErrCorrupt].
type Decoder func(f *tensor.File, data []byte) error

// Open opens a file and decodes it. Of a file whose content is not kept in memory the tensors read
// what is asked of them. name is the name of the format. Every error is a [*tensor.FormatError].
func Open(name, path string, decode Decoder) (*tensor.File, error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, &tensor.FormatError{Format: name, File: path, Offset: -1, Msg: err.Error(), Err: err}
	}
	var f *tensor.File
	err = mapfile.Guard(func() (err error) {
		f, err = Decode(name, path, m.Data, decode)
		return err
	})
	var fault *mapfile.Fault
	if errors.As(err, &fault) {
		err = &tensor.FormatError{Format: name, File: path, Offset: -1, Msg: fault.Error(), Err: fault}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	f.Mapping = m
	if m.Kept {
		return f, nil
	}
	for i, t := range f.Tensors {
		f.Tensors[i].Tensor = t.Deferred(m.Later)
	}
	if err := m.Release(); err != nil {
		return nil, &tensor.FormatError{Format: name, File: path, Offset: -1, Msg: err.Error(), Err: err}
	}
	return f, nil
}

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(name, file string, data []byte, decode Decoder) (*tensor.File, error) {
	if bytes.HasPrefix(data, lfsPrefix) {
		return nil, &tensor.FormatError{Format: name, File: file, Offset: 0, Err: tensor.ErrLFSPointer,
			Msg: "this is a git-lfs pointer, not the file: run git lfs pull"}
	}
	f := &tensor.File{Path: file}
	if err := decode(f, data); err != nil {
		fe := typed(err)
		fe.Format, fe.File = name, file
		return nil, fe
	}
	return f, nil
}

// In is an error in a member of an archive.
func In(member string, err error) error {
	fe := typed(err)
	fe.Member = member
	return fe
}

// typed makes an error a FormatError.
func typed(err error) *tensor.FormatError {
	var fe *tensor.FormatError
	if !errors.As(err, &fe) {
		fe = &tensor.FormatError{Offset: -1, Msg: err.Error(), Err: tensor.ErrCorrupt}
	}
	return fe
}

// Errorf returns a [*tensor.FormatError] for a place in a file, −1 for none, and a record or tensor, "" for none.
func Errorf(class error, offset int64, member, msg string, args ...any) error {
	return &tensor.FormatError{Offset: offset, Member: member, Msg: fmt.Sprintf(msg, args...), Err: class}
}

// lfsPrefix is the beginning of the pointer that stands for a file which git-lfs has not fetched.
var lfsPrefix = []byte("version https://git-lfs.github.com/spec/v1")
