package npy

import (
	"bytes"
	"errors"

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
	return format.Open(name, path, reader{small}.decode)
}

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, reader{}.decode)
}

type reader struct{ small tensor.DType }

func (r reader) decode(f *tensor.File, data []byte) (err error) {
	if r.small != tensor.Invalid && r.small.Size() != 1 {
		return fail(tensor.ErrUnsupported, -1, "descr <V1 cannot be read as %s: want a type of one byte", r.small)
	}
	if bytes.HasPrefix(data, []byte("PK")) {
		f.Tensors, err = r.archive(f.Path, data)
		return err
	}
	t, err := r.array(data, tensor.Place{File: f.Path})
	f.Tensors = []tensor.Named{{Tensor: t}}
	return err
}

// array reads a whole .npy. place.Offset is where it begins in the file, or −1 if it was inflated.
func (r reader) array(data []byte, place tensor.Place) (*tensor.Tensor, error) {
	h, err := parseHeader(data, r.small)
	if err != nil {
		return nil, moved(err, place.Offset)
	}
	payload := data[h.size:]
	switch {
	case len(payload) < h.payload:
		return nil, moved(fail(tensor.ErrTruncated, h.size, "%s%s takes %d bytes, the file has %d of them",
			h.dtype, tensor.FormatShape(h.shape), h.payload, len(payload)), place.Offset)
	case bytes.HasPrefix(payload[h.payload:], []byte(magic)):
		return nil, moved(fail(tensor.ErrUnsupported, h.size+h.payload,
			"a second array follows: save one array a file, or use np.savez"), place.Offset)
	case len(payload) > h.payload:
		return nil, moved(fail(tensor.ErrCorrupt, h.size+h.payload, "%s%s takes %d bytes, %d more follow",
			h.dtype, tensor.FormatShape(h.shape), h.payload, len(payload)-h.payload), place.Offset)
	}
	if place.Offset >= 0 {
		place.Offset += int64(h.size)
	}
	return tensor.FromSpec(tensor.Spec{DType: h.dtype, Shape: h.shape, Strides: h.strides(), Data: payload,
		BigEndian: h.big, Place: place})
}

func fail(class error, offset int, msg string, args ...any) error {
	return format.Errorf(class, int64(offset), "", msg, args...)
}

// moved adds the beginning of an array in the file to the offset of an error in the array.
func moved(err error, begin int64) error {
	var fe *tensor.FormatError
	if errors.As(err, &fe) {
		if begin < 0 {
			fe.Offset = -1
		} else {
			fe.Offset += begin
		}
	}
	return err
}
