package npy

import (
	"bytes"

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
