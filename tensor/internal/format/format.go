// Package format makes the Open and the Decode of each file format out of what differs between
// them: how the content is decoded.
package format

import (
	"bytes"
	"errors"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// A Decoder fills f.Tensors with views of data, the whole content of a file. An error that is no
// [*tensor.FormatError] counts as [tensor.ErrCorrupt].
type Decoder func(f *tensor.File, data []byte) error

// Open maps a file and decodes it. name is that of the format; all errors are a
// [*tensor.FormatError].
func Open(name, path string, decode Decoder) (*tensor.File, error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, &tensor.FormatError{Format: name, File: path, Offset: -1, Msg: err.Error(), Err: err}
	}
	f, err := Decode(name, path, m.Data, decode)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	f.Mapping = m
	return f, nil
}

// Decode is Open for content in memory; file is what errors call it. The tensors are views of data.
func Decode(name, file string, data []byte, decode Decoder) (*tensor.File, error) {
	if bytes.HasPrefix(data, lfsPrefix) {
		return nil, &tensor.FormatError{Format: name, File: file, Offset: 0, Err: tensor.ErrLFSPointer,
			Msg: "this is a git-lfs pointer, not the file: run git lfs pull"}
	}
	f := &tensor.File{Path: file}
	if err := decode(f, data); err != nil {
		var fe *tensor.FormatError
		if !errors.As(err, &fe) {
			fe = &tensor.FormatError{Offset: -1, Msg: err.Error(), Err: tensor.ErrCorrupt}
		}
		fe.Format, fe.File = name, file
		return nil, fe
	}
	return f, nil
}

// lfsPrefix begins the file that git-lfs puts in the place of one that it has not fetched.
var lfsPrefix = []byte("version https://git-lfs.github.com/spec/v1")
