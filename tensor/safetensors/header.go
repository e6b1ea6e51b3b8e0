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

func parseHeader(data []byte) (*header, error) {
	s := &scanner{dec: json.NewDecoder(bytes.NewReader(data))}
	s.dec.UseNumber()
	h := &header{}
	err := s.object(func(name string, at int64) error {
		if name == metaKey {
			h.metadata = map[string]string{}
			return s.objectOrNull(func(key string, _ int64) (err error) {
				h.metadata[key], err = s.text()
				return err
			})
		}
		s.member = name
		e, err := s.entry(name, at)
		h.entries = append(h.entries, e)
		s.member = ""
		return err
	})
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimLeft(data[s.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, s.fail(tensor.ErrCorrupt, "%.20q after the JSON object", rest)
	}
	return h, nil
}

func (s *scanner) entry(name string, at int64) (e entry, err error) {
	e = entry{name: name, at: at}
	var seen int
	err = s.object(func(key string, _ int64) (err error) {
		seen++
		switch key {
		case "dtype":
			e.dtype, err = s.dtype()
		case "shape":
			var dims []int64
			dims, err = s.ints(math.MaxInt, tensor.MaxRank)
			e.shape = make([]int, len(dims))
			for i, d := range dims {
				e.shape[i] = int(d)
			}
		case "data_offsets":
			var o []int64
			o, err = s.ints(math.MaxInt64, 2)
			if err == nil && len(o) != 2 {
				return s.fail(tensor.ErrCorrupt, "data_offsets holds %d numbers, want 2", len(o))
			}
			if err == nil {
				e.from, e.to = o[0], o[1]
			}
		default:
			return s.fail(tensor.ErrUnsupported, "unknown key %q", key)
		}
		return err
	})
	if err == nil && seen != 3 {
		return e, s.fail(tensor.ErrCorrupt, "want dtype, shape and data_offsets")
	}
	return e, err
}

func (s *scanner) dtype() (tensor.DType, error) {
	name, err := s.text()
	if err != nil {
		return tensor.Invalid, err
	}
	if d, ok := dtypeOf(name); ok {
		return d, nil
	}
	if slices.Contains(unsupported, name) {
		return tensor.Invalid, s.fail(tensor.ErrUnsupported,
			"dtype %s cannot be compared: save the file without this tensor", name)
	}
	return tensor.Invalid, s.fail(tensor.ErrCorrupt, "unknown dtype %q", name)
}

// object calls value at the value of each key. A repeated key is an error.
func (s *scanner) object(value func(key string, at int64) error) error {
	if err := s.delim('{'); err != nil {
		return err
	}
	return s.members(value)
}

// objectOrNull is object for a value that writers may leave out: mlx writes null.
func (s *scanner) objectOrNull(value func(key string, at int64) error) error {
	tok, err := s.token()
	switch {
	case err != nil || tok == nil:
		return err
	case tok != json.Delim('{'):
		return s.fail(tensor.ErrCorrupt, "%v instead of %q", tok, '{')
	}
	return s.members(value)
}

// members is object behind the bracket.
func (s *scanner) members(value func(key string, at int64) error) error {
	seen := map[string]bool{}
	for s.dec.More() {
		at := 8 + s.dec.InputOffset()
		key, err := s.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return s.fail(tensor.ErrCorrupt, "the key %q is there twice", key)
		}
		seen[key] = true
		if err := value(key, at); err != nil {
			return err
		}
	}
	return s.delim('}')
}

// ints reads a list of at most n numbers from 0 to limit.
func (s *scanner) ints(limit int64, n int) ([]int64, error) {
	if err := s.delim('['); err != nil {
		return nil, err
	}
	list := []int64{}
	for s.dec.More() {
		tok, err := s.token()
		if err != nil {
			return nil, err
		}
		num, ok := tok.(json.Number)
		v, err := strconv.ParseInt(string(num), 10, 64)
		if !ok || err != nil || v < 0 || v > limit {
			return nil, s.fail(tensor.ErrCorrupt, "%v is not a size or offset: want an integer from 0 to %d",
				tok, limit)
		}
		if list = append(list, v); len(list) > n {
			return nil, s.fail(tensor.ErrCorrupt, "a list of more than %d numbers", n)
		}
	}
	return list, s.delim(']')
}

func (s *scanner) text() (string, error) {
	tok, err := s.token()
	if err != nil {
		return "", err
	}
	text, ok := tok.(string)
	if !ok {
		return "", s.fail(tensor.ErrCorrupt, "%v instead of a string", tok)
	}
	return text, nil
}

func (s *scanner) delim(want json.Delim) error {
	tok, err := s.token()
	if err == nil && tok != want {
		err = s.fail(tensor.ErrCorrupt, "%v instead of %q", tok, rune(want))
	}
	return err
}

func (s *scanner) token() (json.Token, error) {
	tok, err := s.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, s.fail(tensor.ErrCorrupt, "the header is not valid JSON: %v", err)
	}
	return tok, nil
}

func (s *scanner) fail(class error, msg string, args ...any) error {
	return format.Errorf(class, 8+s.dec.InputOffset(), s.member, msg, args...)
}
