package torchpt

import (
	"bytes"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const name = "torchpt"

// Open maps a file of torch.save. The tensors are views of the mapping and must not be used after
// Close. Every error is a [*tensor.FormatError].
func Open(path string) (*tensor.File, error) { return format.Open(name, path, decode) }

// Decode is Open for a file in memory, which errors call file. The tensors are views of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, decode)
}

var (
	zipMagic    = []byte("PK\x03\x04")
	protoPrefix = []byte{0x80} // PROTO
)

func decode(f *tensor.File, data []byte) {
	switch {
	case bytes.HasPrefix(data, zipMagic):
		decodeZip(f, data)
	case bytes.HasPrefix(data, protoPrefix):
		decodeFlat(f, data)
	case bytes.HasPrefix(zipMagic, data):
		format.Fail(tensor.ErrTruncated, int64(len(data)), "", "the file is empty, or ends in its first signature")
	default:
		format.Fail(tensor.ErrCorrupt, 0, "", "this is not a file of torch.save, or one of torch before 0.2, to be loaded with torch and saved again: "+
			"it begins with %q", data[:min(len(data), 8)])
	}
}
