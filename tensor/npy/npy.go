// Package npy reads numpy's .npy files and .npz archives, and writes .npy files.
//
//	offset  type     meaning
//	0       6 bytes  magic 93 'NUMPY'
//	6       2 bytes  version: 1.0, 2.0 or 3.0
//	8       u16|u32  N, the size of the header, little-endian; 2 bytes in version 1.0, else 4
//	10|12   N bytes  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } and spaces;
//	                 Latin-1, in version 3.0 UTF-8
//	…       bytes    the elements, to the end of the file
//
// Arrays in Fortran order or with big-endian elements are not copied, nor are members of an archive
// that are not compressed. Compressed members are inflated into memory, each to the size that its
// header declares, and all together to at most 1 GiB or 16 times the size of the archive, whichever
// is more. An archive names its tensors without ".npy"; the tensor of a .npy has no name.
//
// numpy does not know the small floats of ml_dtypes, which jax, mlx and others use, and writes only
// part of their type:
//
//	descr   read as
//	<V2     bfloat16, the only type of 16 bits
//	<f1     float8_e5m2, the only one that calls itself a float
//	<V1     any other type of 8 bits or less; which one is unknown, see [OpenAs]
//
// Structured types, complex numbers, dates, text and Python objects are refused by name. Nothing is
// ever unpickled.
package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	name  = "npy"
	magic = "\x93NUMPY"
)

// Open maps a .npy or .npz file; the content says which of the two it is. Every error is a
// [*tensor.FormatError].
func Open(path string) (*tensor.File, error) { return OpenAs(path, tensor.Invalid) }

// OpenAs is Open for arrays of the 8-bit floats of ml_dtypes, of which numpy writes only the size
// (descr "<V1"): these are read as small, a type of one byte. All other arrays are read as by Open.
func OpenAs(path string, small tensor.DType) (*tensor.File, error) {
	return format.Open(name, path, reader{small: small}.decode)
}

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, reader{}.decode)
}

type reader struct {
	small  tensor.DType
	member string // of an archive
	begin  int64  // of the array in the file; −1 if it was inflated
}

// fail ends the reading of an array; offset counts from its beginning.
func (r reader) fail(class error, offset int, msg string, args ...any) {
	at := r.begin + int64(offset)
	if r.begin < 0 || offset < 0 {
		at = -1
	}
	format.Fail(class, at, r.member, msg, args...)
}

func (r reader) decode(f *tensor.File, data []byte) {
	if r.small != tensor.Invalid && r.small.Size() != 1 {
		r.fail(tensor.ErrUnsupported, -1, "descr <V1 cannot be read as %s: want a type of one byte", r.small)
	}
	if bytes.HasPrefix(data, []byte("PK")) {
		f.Tensors = r.archive(f.Path, data)
		return
	}
	f.Tensors = []tensor.Named{{Tensor: r.array(f.Path, data)}}
}

// array reads a whole .npy.
func (r reader) array(path string, data []byte) *tensor.Tensor {
	h := r.header(data)
	payload := data[h.size:]
	switch more := len(payload) - h.payload; {
	case more < 0:
		r.fail(tensor.ErrTruncated, h.size, "%s%s takes %d bytes, the file has %d of them",
			h.dtype, tensor.FormatShape(h.shape), h.payload, len(payload))
	case bytes.HasPrefix(payload[h.payload:], []byte(magic)):
		r.fail(tensor.ErrUnsupported, h.size+h.payload, "a second array follows: save one array a file, or use np.savez")
	case more > 0:
		r.fail(tensor.ErrCorrupt, h.size+h.payload, "%s%s takes %d bytes, %d more follow",
			h.dtype, tensor.FormatShape(h.shape), h.payload, more)
	}
	place := tensor.Place{File: path, Offset: r.begin}
	if r.begin >= 0 {
		place.Offset += int64(h.size)
	}
	return format.Tensor(tensor.Spec{DType: h.dtype, Shape: h.shape, Strides: h.strides(), Data: payload,
		BigEndian: h.big, Place: place}, r.begin, r.member)
}

// archive reads the members of a .npz, which is a zip file.
func (r reader) archive(path string, data []byte) (tensors []tensor.Named) {
	for _, m := range format.Zip(data) {
		if strings.HasSuffix(m.Name, "/") && m.Size == 0 {
			continue // a folder
		}
		r.member = m.Name
		name, isArray := strings.CutSuffix(m.Name, ".npy")
		switch {
		case !utf8.ValidString(m.Name):
			r.fail(tensor.ErrCorrupt, -1, "the name is not UTF-8")
		case !isArray:
			r.fail(tensor.ErrUnsupported, -1, "want members with names that end in .npy")
		}
		raw, at := m.Content()
		r.begin = at
		tensors = append(tensors, tensor.Named{Name: name, Tensor: r.array(path, raw)})
	}
	return tensors
}

// Write writes an array, little-endian and in row-major order, with the same bytes as np.save (with
// ml_dtypes for bfloat16 and the 8-bit floats; of these all but float8_e5m2 can only be read with
// [OpenAs]).
func Write(w io.Writer, t *tensor.Tensor) error {
	shape := make([]string, len(t.Shape()))
	for i, d := range t.Shape() {
		shape[i] = fmt.Sprint(d)
	}
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s",
		descr(t.DType()), strings.Join(shape, ", "))
	if len(shape) == 1 {
		h += ","
	}
	h += "), }"
	if len(shape) > 0 {
		h += strings.Repeat(" ", 21-len(shape[0])) // numpy leaves room for the first axis to grow
	}
	h += strings.Repeat(" ", 64-(10+len(h)+1)%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(h)))
	if _, err := w.Write(append(b, h...)); err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	if _, err := t.WriteTo(w); err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	return nil
}

func descr(d tensor.DType) string {
	switch d {
	case tensor.Bool, tensor.I8, tensor.U8:
		return "|" + kindOf(d)
	case tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2FNUZ, tensor.F8E8M0FNU:
		return "<V1"
	}
	return "<" + kindOf(d)
}

func kindOf(d tensor.DType) string {
	for kind, k := range dtypes {
		if k == d && kind != "?" {
			return kind
		}
	}
	return ""
}
