package safetensors

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	name      = "safetensors"
	maxHeader = 100_000_000
	metaKey   = "__metadata__"
)

// Open maps a .safetensors file. Its tensors come in the order of the header. All errors are a
// [*tensor.FormatError].
func Open(path string) (*tensor.File, error) { return format.Open(name, path, read) }

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, read)
}

func read(f *tensor.File, data []byte) {
	if len(data) < 8 {
		format.Fail(tensor.ErrTruncated, 0, "", "%d bytes, the size of the header alone takes 8", len(data))
	}
	size := binary.LittleEndian.Uint64(data)
	switch {
	case size > maxHeader:
		format.Fail(tensor.ErrCorrupt, 0, "", "a header of %d bytes, at most %d are allowed: is this a .safetensors file?",
			size, maxHeader)
	case size > uint64(len(data)-8):
		format.Fail(tensor.ErrTruncated, 0, "", "a header of %d bytes in a file of %d bytes", size, len(data))
	}
	start := 8 + int(size)
	header, buffer := data[8:start], data[start:]
	if len(header) == 0 || header[0] != '{' || !utf8.Valid(header) {
		format.Fail(tensor.ErrCorrupt, 8, "", "the header is not a JSON object in UTF-8: %.40q", header)
	}
	h := parseHeader(header)
	checkLayout(h.entries, int64(start), int64(len(buffer)))
	f.Metadata = h.metadata
	for _, e := range h.entries {
		// checkLayout made sure that both offsets are within the buffer, and that the size fits the shape.
		t := format.Tensor(tensor.Spec{DType: e.dtype, Shape: e.shape, Data: buffer[e.from:e.to:e.to],
			Place: tensor.Place{File: f.Path, Offset: int64(start) + e.from}}, e.at, e.name)
		f.Tensors = append(f.Tensors, tensor.Named{Name: e.name, Tensor: t})
	}
}

// checkLayout requires that the tensors cover each byte once of the buffer, which begins at start
// and has size bytes.
func checkLayout(entries []entry, start, size int64) {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	end, last := int64(0), ""
	for _, e := range sorted {
		n := format.NumBytes(e.dtype, e.shape, e.at, e.name)
		fail := func(class error, msg string, args ...any) {
			format.Fail(class, e.at, e.name, "data_offsets [%d,%d] "+msg, append([]any{e.from, e.to}, args...)...)
		}
		switch {
		case e.from > e.to || int64(n) != e.to-e.from:
			fail(tensor.ErrCorrupt, "are %d bytes, %s%s takes %d", e.to-e.from, e.dtype, tensor.FormatShape(e.shape), n)
		case e.from < end:
			fail(tensor.ErrCorrupt, "overlap %q, which ends at %d", last, end)
		case e.from > end:
			fail(tensor.ErrCorrupt, "leave a hole from %d on", end)
		case e.to > size:
			fail(tensor.ErrTruncated, "want a file of %d bytes, it has %d", start+e.to, start+size)
		}
		end, last = e.to, e.name
	}
	if end != size {
		format.Fail(tensor.ErrCorrupt, start+end, "", "%d bytes after the last tensor belong to none", size-end)
	}
}

func dtypeName(d tensor.DType) string { return strings.ToUpper(d.Short()) }
