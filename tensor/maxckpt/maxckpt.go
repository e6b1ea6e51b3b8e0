// Package maxckpt reads and writes the .max files of Modular MAX, which its print ops write in the
// style BINARY_MAX_CHECKPOINT, with one tensor in each file.
//
// All numbers are little-endian.
//
//	offset    type      meaning
//	0         8 bytes   magic 93 F0 9F 94 A5 2B 2B 93
//	8         u32       major version, 0
//	12        u32       minor version, 1 in MAX 26.7
//	16        u64       size of the metadata, which begins at 24: 4 + k + 2 + 4·rank + 8
//	24        u32       k, the size of the name
//	28        k bytes   name of the tensor, UTF-8
//	28+k      u8        dtype, a value of max.dtype.DType
//	29+k      u8        rank
//	30+k      rank·u32  shape
//	30+k+4r   u64       offset of the elements from the start of the file
//
// The elements are in row-major order, at any offset after the metadata, and fill the rest of the
// file. Nothing is aligned.
package maxckpt

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	name  = "maxckpt"
	magic = "\x93\xf0\x9f\x94\xa5++\x93"

	prefixSize = 24            // magic, versions, size of the metadata
	fixedSize  = 4 + 1 + 1 + 8 // of the metadata, without name and shape
	minor      = 1             // what MAX 26.7 writes
)

// The codes of max.dtype.DType.
var dtypes = map[byte]tensor.DType{
	1:  tensor.Bool,
	73: tensor.F8E8M0FNU, 75: tensor.F8E4M3FN, 76: tensor.F8E4M3FNUZ, 77: tensor.F8E5M2, 78: tensor.F8E5M2FNUZ,
	79: tensor.F16, 80: tensor.BF16, 81: tensor.F32, 82: tensor.F64,
	134: tensor.U8, 135: tensor.I8, 136: tensor.U16, 137: tensor.I16,
	138: tensor.U32, 139: tensor.I32, 140: tensor.U64, 141: tensor.I64,
}

// Open maps a .max file. Its only tensor has the name in the file. Every error is a
// [*tensor.FormatError].
func Open(path string) (*tensor.File, error) { return format.Open(name, path, decode) }

// Decode is Open for content in memory, which errors call file. The tensor is a view of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, decode)
}

func decode(f *tensor.File, data []byte) {
	if n := min(len(data), len(magic)); string(data[:n]) != magic[:n] {
		fail(tensor.ErrCorrupt, 0, "begins with % x, a .max file with % x", data[:n], magic)
	}
	if len(data) < prefixSize {
		fail(tensor.ErrTruncated, len(data), "the file ends within the header")
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != 0 {
		fail(tensor.ErrUnsupported, 8, "major version %d, only 0 is known", v)
	}
	size := binary.LittleEndian.Uint64(data[16:])
	switch {
	case size < fixedSize:
		fail(tensor.ErrCorrupt, 16, "%d bytes of metadata, a tensor needs %d at least", size, fixedSize)
	case size > uint64(len(data)-prefixSize):
		fail(tensor.ErrTruncated, 16, "%d bytes of metadata in a file of %d bytes", size, len(data))
	}
	end := prefixSize + int(size)

	keySize := binary.LittleEndian.Uint32(data[24:])
	if uint64(keySize) > size-fixedSize {
		fail(tensor.ErrCorrupt, 24, "a name of %d bytes in %d bytes of metadata", keySize, size)
	}
	at := 28 + int(keySize)
	key := data[28:at]
	if !utf8.Valid(key) {
		fail(tensor.ErrCorrupt, 28, "the name %q is not UTF-8", key)
	}
	code, rank := data[at], int(data[at+1])
	switch want := fixedSize + uint64(keySize) + 4*uint64(rank); {
	case size > want:
		fail(tensor.ErrUnsupported, 16,
			"%d bytes of metadata, but one tensor of rank %d takes %d: files with several tensors are not read", size, rank, want)
	case size < want:
		fail(tensor.ErrCorrupt, 16, "%d bytes of metadata, but a tensor of rank %d takes %d", size, rank, want)
	}
	dtype, ok := dtypes[code]
	if !ok {
		fail(tensor.ErrUnsupported, at, "%q has the dtype code %d, which is unknown or cannot be compared: cast it before it is printed", key, code)
	}
	shape := make([]int, rank)
	for i := range shape {
		shape[i] = int(binary.LittleEndian.Uint32(data[at+2+4*i:])) // negative where int has 32 bits, which is refused below
	}
	n, off := format.NumBytes(dtype, shape, int64(at+1), string(key)), binary.LittleEndian.Uint64(data[end-8:])
	switch left := uint64(len(data)) - min(off, uint64(len(data))); {
	case off < uint64(end):
		fail(tensor.ErrCorrupt, end-8, "the elements begin at byte %d, within the header of %d bytes", off, end)
	case uint64(n) != left || off > uint64(len(data)):
		class := tensor.ErrCorrupt
		if uint64(n) > left || off > uint64(len(data)) {
			class = tensor.ErrTruncated
		}
		fail(class, end-8, "%s%s takes %d bytes from byte %d, the file ends at %d", dtype, tensor.FormatShape(shape), n, off, len(data))
	}
	t := format.Tensor(tensor.Spec{DType: dtype, Shape: shape, Data: data[off:],
		Place: tensor.Place{File: f.Path, Offset: int64(off)}}, int64(off), string(key))
	f.Tensors = []tensor.Named{{Name: string(key), Tensor: t}}
}

// Write writes a tensor as MAX does, with the elements directly after the header. Equal tensors
// give equal bytes.
func Write(w io.Writer, name string, t *tensor.Tensor) error {
	if !utf8.ValidString(name) || len(name) > math.MaxInt32 {
		return fmt.Errorf("maxckpt: write: %.80q cannot be a name: want UTF-8 of at most 2 GiB", name)
	}
	var code byte
	for c, d := range dtypes {
		if d == t.DType() {
			code = c
		}
	}
	le := binary.LittleEndian
	size := fixedSize + len(name) + 4*len(t.Shape())
	h := le.AppendUint32(le.AppendUint32([]byte(magic), 0), minor)
	h = le.AppendUint32(le.AppendUint64(h, uint64(size)), uint32(len(name)))
	h = append(append(h, name...), code, byte(len(t.Shape())))
	for _, d := range t.Shape() {
		if uint64(d) > math.MaxUint32 {
			return fmt.Errorf("maxckpt: write %q: an axis of size %d, at most %d can be written", name, d, uint32(math.MaxUint32))
		}
		h = le.AppendUint32(h, uint32(d))
	}
	_, err := w.Write(le.AppendUint64(h, uint64(prefixSize+size)))
	if err == nil {
		_, err = t.WriteTo(w)
	}
	if err != nil {
		return fmt.Errorf("maxckpt: write %q: %w", name, err)
	}
	return nil
}

func fail(class error, offset int, msg string, args ...any) {
	format.Fail(class, int64(offset), "", msg, args...)
}
