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

// A Decoder sets f.Tensors to views of data, the whole content of a file, or ends with [Fail].
type Decoder func(f *tensor.File, data []byte)

// Fail ends the call of a [Decoder]: with what is wrong at a place in the file, −1 for none, in a record or
// tensor, "" for none.
func Fail(class error, offset int64, member, msg string, args ...any) {
	panic(&tensor.FormatError{Offset: offset, Member: member, Msg: fmt.Sprintf(msg, args...), Err: class})
}

// Want is [Fail] unless ok.
func Want(ok bool, class error, offset int64, member, msg string, args ...any) {
	if !ok {
		Fail(class, offset, member, msg, args...)
	}
}

// Open opens a file and decodes it. name is the name of the format. Every error is a [*tensor.FormatError].
func Open(name, path string, decode Decoder) (f *tensor.File, err error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, &tensor.FormatError{Format: name, File: path, Offset: -1, Msg: err.Error(), Err: err}
	}
	err = mapfile.Guard(func() (err error) {
		f, err = Decode(name, path, m.Data, decode)
		return err
	})
	if fault, is := errors.AsType[*mapfile.Fault](err); is {
		err = &tensor.FormatError{Format: name, File: path, Offset: -1, Msg: fault.Error(), Err: fault}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	f.Mapping = m
	return f, nil
}

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(name, file string, data []byte, decode Decoder) (f *tensor.File, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *tensor.FormatError:
			r.Format, r.File = name, file
			f, err = nil, r
		default:
			panic(r)
		}
	}()
	Want(!bytes.HasPrefix(data, lfsPrefix), tensor.ErrLFSPointer, 0, "",
		"this is a git-lfs pointer, not the file: run git lfs pull")
	f = &tensor.File{Path: file}
	decode(f, data)
	return f, nil
}

// Tensor returns the tensor of a description; a wrong one is an error at a place in the file.
func Tensor(s tensor.Spec, offset int64, member string) *tensor.Tensor {
	t, err := tensor.FromSpec(s)
	Want(err == nil, tensor.ErrCorrupt, offset, member, "%v", err)
	return t
}

// NumBytes is [tensor.NumBytes]; an impossible shape is an error at a place in the file.
func NumBytes(d tensor.DType, shape []int, offset int64, member string) int {
	n, err := tensor.NumBytes(d, shape)
	Want(err == nil, tensor.ErrCorrupt, offset, member, "%v", err)
	return n
}

// lfsPrefix is the beginning of the pointer that stands for a file which git-lfs has not fetched.
var lfsPrefix = []byte("version https://git-lfs.github.com/spec/v1")
