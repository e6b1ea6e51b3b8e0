package safetensors

import (
	"bytes"
	"encoding/json"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

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
			if len(o) != 2 || o[0] < 0 {
				format.Fail(tensor.ErrCorrupt, at, name, "data_offsets %v: want two numbers that are not negative", o)
			}
			e.from, e.to = o[0], o[1]
		default:
			format.Fail(tensor.ErrUnsupported, at, name, "unknown key %q", key)
		}
	})
	if seen != 3 {
		format.Fail(tensor.ErrCorrupt, at, name, "want dtype, shape and data_offsets")
	}
	return e
}

// dtypeOf finds a type by its name in the format.
func dtypeOf(name string, at int64, member string) tensor.DType {
	d, err := tensor.ParseDType(name)
	if err != nil || dtypeName(d) != name {
		format.Fail(tensor.ErrUnsupported, at, member, "dtype %.40q is unknown, or cannot be compared: save the file without this tensor", name)
	}
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
