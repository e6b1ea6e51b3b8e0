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

// Types of the format that [tensor.DType] does not have.
var unsupported = []string{"F4", "F6_E2M3", "F6_E3M2", "C64"}

// Open maps a .safetensors file. Its tensors come in the order of the header. All errors are a
// [*tensor.FormatError].
func Open(path string) (*tensor.File, error) { return format.Open(name, path, decode) }

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, decode)
}

func decode(f *tensor.File, data []byte) error {
	if len(data) < 8 {
		return format.Errorf(tensor.ErrTruncated, 0, "", "%d bytes, the size of the header alone takes 8", len(data))
	}
	size := binary.LittleEndian.Uint64(data)
	if size > maxHeader {
		return format.Errorf(tensor.ErrCorrupt, 0, "",
			"a header of %d bytes, at most %d are allowed: is this a .safetensors file?", size, maxHeader)
	}
	if size > uint64(len(data)-8) {
		return format.Errorf(tensor.ErrTruncated, 0, "", "a header of %d bytes in a file of %d bytes", size, len(data))
	}
	start := 8 + int(size)
	header, buffer := data[8:start], data[start:]
	if len(header) == 0 || header[0] != '{' || !utf8.Valid(header) {
		return format.Errorf(tensor.ErrCorrupt, 8, "", "the header is not a JSON object in UTF-8: %.40q", header)
	}
	h, err := parseHeader(header)
	if err != nil {
		return err
	}
	if err := checkLayout(h.entries, int64(start), int64(len(buffer))); err != nil {
		return err
	}
	f.Metadata = h.metadata
	f.Tensors = make([]tensor.Named, len(h.entries))
	for i, e := range h.entries {
		// checkLayout made sure that both offsets are within the buffer, and that the size fits the
		// shape.
		t, err := tensor.FromSpec(tensor.Spec{DType: e.dtype, Shape: e.shape, Data: buffer[e.from:e.to:e.to],
			Place: tensor.Place{File: f.Path, Offset: int64(start) + e.from}})
		if err != nil {
			return format.Errorf(tensor.ErrCorrupt, e.at, e.name, "%v", err)
		}
		f.Tensors[i] = tensor.Named{Name: e.name, Tensor: t}
	}
	return nil
}

// checkLayout requires that the tensors cover each byte once of the buffer, which begins at start
// and has size bytes.
func checkLayout(entries []entry, start, size int64) error {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	end, last := int64(0), ""
	for _, e := range sorted {
		n, err := tensor.NumBytes(e.dtype, e.shape)
		switch {
		case err != nil:
			return format.Errorf(tensor.ErrCorrupt, e.at, e.name, "%v", err)
		case e.from > e.to || int64(n) != e.to-e.from:
			return format.Errorf(tensor.ErrCorrupt, e.at, e.name, "%s%s takes %d bytes, data_offsets [%d,%d] say %d",
				e.dtype, tensor.FormatShape(e.shape), n, e.from, e.to, e.to-e.from)
		case e.from < end:
			return format.Errorf(tensor.ErrCorrupt, e.at, e.name, "data_offsets [%d,%d] overlap %q, which ends at %d",
				e.from, e.to, last, end)
		case e.from > end:
			return format.Errorf(tensor.ErrCorrupt, e.at, e.name, "data_offsets [%d,%d] leave a hole from %d on",
				e.from, e.to, end)
		case e.to > size:
			return format.Errorf(tensor.ErrTruncated, e.at, e.name, "data_offsets [%d,%d] want a file of %d bytes, it has %d",
				e.from, e.to, start+e.to, start+size)
		}
		end, last = e.to, e.name
	}
	if end != size {
		return format.Errorf(tensor.ErrCorrupt, start+end, "", "%d bytes after the last tensor belong to none", size-end)
	}
	return nil
}

func dtypeOf(name string) (tensor.DType, bool) {
	d, err := tensor.ParseDType(name)
	return d, err == nil && dtypeName(d) == name
}

func dtypeName(d tensor.DType) string { return strings.ToUpper(d.Short()) }
