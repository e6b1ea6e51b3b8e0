package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

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

// scanner reads the header token by token. It keeps the order, notices repeated keys, and allows no
// more nesting than the format.
type scanner struct {
	dec    *json.Decoder
	member string // name of the tensor that is being read
}

func parseHeader(data []byte) *header {
	s := &scanner{dec: json.NewDecoder(bytes.NewReader(data))}
	s.dec.UseNumber()
	h := &header{}
	s.object(func(name string, at int64) {
		if name == metaKey {
			h.metadata = map[string]string{}
			s.objectOrNull(func(key string, _ int64) { h.metadata[key] = s.text() })
			return
		}
		s.member = name
		h.entries = append(h.entries, s.entry(name, at))
		s.member = ""
	})
	if rest := bytes.TrimLeft(data[s.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		s.fail(tensor.ErrCorrupt, "%.20q after the JSON object", rest)
	}
	return h
}

func (s *scanner) entry(name string, at int64) entry {
	e := entry{name: name, at: at}
	seen := 0
	s.object(func(key string, _ int64) {
		seen++
		switch key {
		case "dtype":
			e.dtype = s.dtype()
		case "shape":
			e.shape = []int{}
			for _, d := range s.ints(math.MaxInt, tensor.MaxRank) {
				e.shape = append(e.shape, int(d))
			}
		case "data_offsets":
			o := s.ints(math.MaxInt64, 2)
			if len(o) != 2 {
				s.fail(tensor.ErrCorrupt, "data_offsets holds %d numbers, want 2", len(o))
			}
			e.from, e.to = o[0], o[1]
		default:
			s.fail(tensor.ErrUnsupported, "unknown key %q", key)
		}
	})
	if seen != 3 {
		s.fail(tensor.ErrCorrupt, "want dtype, shape and data_offsets")
	}
	return e
}

func (s *scanner) dtype() tensor.DType {
	name := s.text()
	d, ok := dtypeOf(name)
	switch {
	case ok:
	case slices.Contains(unsupported, name):
		s.fail(tensor.ErrUnsupported, "dtype %s cannot be compared: save the file without this tensor", name)
	default:
		s.fail(tensor.ErrCorrupt, "unknown dtype %q", name)
	}
	return d
}

// object calls value at the value of each key. A repeated key is an error.
func (s *scanner) object(value func(key string, at int64)) {
	s.delim('{')
	s.members(value)
}

// objectOrNull is object for a value that writers may leave out: mlx writes null.
func (s *scanner) objectOrNull(value func(key string, at int64)) {
	switch tok := s.token(); tok {
	case nil:
	case json.Delim('{'):
		s.members(value)
	default:
		s.fail(tensor.ErrCorrupt, "%v instead of %q", tok, '{')
	}
}

// members is object after the bracket.
func (s *scanner) members(value func(key string, at int64)) {
	seen := map[string]bool{}
	for s.dec.More() {
		at := 8 + s.dec.InputOffset()
		key := s.text()
		if seen[key] {
			s.fail(tensor.ErrCorrupt, "the key %q is there twice", key)
		}
		seen[key] = true
		value(key, at)
	}
	s.delim('}')
}

// ints reads a list of at most n numbers from 0 to limit.
func (s *scanner) ints(limit int64, n int) (list []int64) {
	s.delim('[')
	for s.dec.More() {
		tok := s.token()
		num, ok := tok.(json.Number)
		v, err := strconv.ParseInt(string(num), 10, 64)
		if !ok || err != nil || v < 0 || v > limit {
			s.fail(tensor.ErrCorrupt, "%v is not a size or offset: want an integer from 0 to %d", tok, limit)
		}
		if list = append(list, v); len(list) > n {
			s.fail(tensor.ErrCorrupt, "a list of more than %d numbers", n)
		}
	}
	s.delim(']')
	return list
}

func (s *scanner) text() string {
	tok := s.token()
	text, ok := tok.(string)
	if !ok {
		s.fail(tensor.ErrCorrupt, "%v instead of a string", tok)
	}
	return text
}

func (s *scanner) delim(want json.Delim) {
	if tok := s.token(); tok != want {
		s.fail(tensor.ErrCorrupt, "%v instead of %q", tok, rune(want))
	}
}

func (s *scanner) token() json.Token {
	tok, err := s.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		s.fail(tensor.ErrCorrupt, "the header is not valid JSON: %v", err)
	}
	return tok
}

func (s *scanner) fail(class error, msg string, args ...any) {
	format.Fail(class, 8+s.dec.InputOffset(), s.member, msg, args...)
}
