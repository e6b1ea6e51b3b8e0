// Package safetensors reads and writes .safetensors files: a JSON header and one buffer of raw
// little-endian tensors.
//
//	offset  type     meaning
//	0       u64      N, the size of the header, little-endian, at most 100,000,000
//	8       N bytes  {"__metadata__":{"key":"value",…},
//	                 "name":{"dtype":"F32","shape":[2,3],"data_offsets":[from,to]},…}, spaces at the end
//	8+N     bytes    the buffer; data_offsets count from here
//
// Read is what the format allows and nothing else: no key twice, no hole, no overlap, no byte of
// the buffer without a tensor. The types F4, F6_E2M3, F6_E3M2 and C64 exist, but cannot be
// compared; a file that holds one is refused as a whole, with its name.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
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
	format.Want(len(data) >= 8, tensor.ErrTruncated, 0, "",
		"%d bytes, the size of the header alone takes 8", len(data))
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
	format.Want(len(header) > 0 && header[0] == '{' && utf8.Valid(header), tensor.ErrCorrupt, 8, "",
		"the header is not a JSON object in UTF-8: %.40q", header)
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
	format.Want(end == size, tensor.ErrCorrupt, start+end, "",
		"%d bytes after the last tensor belong to none", size-end)
}

func dtypeName(d tensor.DType) string { return strings.ToUpper(d.Short()) }

// entry is one tensor of a header.
type entry struct {
	name     string
	dtype    tensor.DType
	shape    []int
	from, to int64 // data_offsets
	at       int64 // offset of the entry in the file
}

type header struct {
	entries  []entry
	metadata map[string]string
}

func parseHeader(data []byte) *header {
	h := &header{}
	object(data, 8, "", func(name string, value json.RawMessage, at int64) {
		switch {
		case name != metaKey:
			h.entries = append(h.entries, parseEntry(name, value, at))
		case string(value) != "null": // as mlx writes it
			h.metadata = map[string]string{}
			object(value, at, "", func(key string, value json.RawMessage, at int64) {
				h.metadata[key] = decode[string](value, at, "")
			})
		}
	})
	return h
}

func parseEntry(name string, data []byte, at int64) entry {
	e := entry{name: name, at: at}
	seen := 0
	object(data, at, name, func(key string, value json.RawMessage, at int64) {
		seen++
		switch key {
		case "dtype":
			e.dtype = dtypeOf(decode[string](value, at, name), at, name)
		case "shape":
			e.shape = decode[[]int](value, at, name)
		case "data_offsets":
			o := decode[[]int64](value, at, name)
			format.Want(len(o) == 2 && o[0] >= 0, tensor.ErrCorrupt, at, name,
				"data_offsets %v: want two numbers that are not negative", o)
			e.from, e.to = o[0], o[1]
		default:
			format.Fail(tensor.ErrUnsupported, at, name, "unknown key %q", key)
		}
	})
	format.Want(seen == 3, tensor.ErrCorrupt, at, name, "want dtype, shape and data_offsets")
	return e
}

// dtypeOf finds a type by its name in the format.
func dtypeOf(name string, at int64, member string) tensor.DType {
	d, err := tensor.ParseDType(name)
	format.Want(err == nil && dtypeName(d) == name, tensor.ErrUnsupported, at, member,
		"dtype %.40q is unknown, or cannot be compared: save the file without this tensor", name)
	return d
}

// object calls value for each key of a JSON object that begins at a byte of the file, in order. A repeated key is
// an error.
func object(data []byte, begin int64, member string, value func(key string, value json.RawMessage, at int64)) {
	dec := json.NewDecoder(bytes.NewReader(data))
	fail := func(msg string, args ...any) {
		format.Fail(tensor.ErrCorrupt, begin+dec.InputOffset(), member, msg, args...)
	}
	token := func() json.Token {
		tok, err := dec.Token()
		if err != nil {
			fail("the header is not valid JSON: %v", err)
		}
		return tok
	}
	if tok := token(); tok != json.Delim('{') {
		fail("%v instead of '{'", tok)
	}
	seen := map[string]bool{}
	for dec.More() {
		at := begin + dec.InputOffset()
		key, _ := token().(string)
		if seen[key] {
			fail("the key %q is there twice", key)
		}
		seen[key] = true
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			fail("the header is not valid JSON: %v", err)
		}
		value(key, raw, at)
	}
	token()
	if rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		fail("%.20q after the JSON object", rest)
	}
}

// decode reads a value of a type.
func decode[T any](data json.RawMessage, at int64, member string) (v T) {
	if err := json.Unmarshal(data, &v); err != nil || string(data) == "null" {
		format.Fail(tensor.ErrCorrupt, at, member, "%.40s is no %T", data, v)
	}
	return v
}
