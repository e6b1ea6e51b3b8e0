package npy

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// header is what comes before the elements of an array.
type header struct {
	size    int // bytes before the elements
	payload int // bytes of the elements
	dtype   tensor.DType
	big     bool
	fortran bool
	shape   []int
}

// strides returns nil for row-major order. In Fortran order the elements along the first axis are
// adjacent.
func (h *header) strides() []int {
	if !h.fortran || h.payload == 0 {
		return nil
	}
	s := make([]int, len(h.shape))
	n := 1
	for i, d := range h.shape {
		s[i] = n
		n *= d
	}
	return s
}

// parseHeader reads the beginning of an array. data may end after the header. Offsets in errors
// count from its start.
func parseHeader(data []byte, small tensor.DType) (*header, error) {
	if n := min(len(data), len(magic)); string(data[:n]) != magic[:n] {
		return nil, fail(tensor.ErrCorrupt, 0, "begins with %q, a .npy file with %q", data[:n], magic)
	}
	if len(data) < 12 {
		return nil, fail(tensor.ErrTruncated, len(data), "the file ends within the header")
	}
	var start, size int
	switch v := [2]byte{data[6], data[7]}; v {
	case [2]byte{1, 0}:
		start, size = 10, int(binary.LittleEndian.Uint16(data[8:]))
	case [2]byte{2, 0}, [2]byte{3, 0}:
		n := binary.LittleEndian.Uint32(data[8:])
		start, size = 12, int(min(n, math.MaxInt32))
	default:
		return nil, fail(tensor.ErrUnsupported, 6, "version %d.%d of the format, known are 1.0, 2.0 and 3.0",
			v[0], v[1])
	}
	if size > len(data)-start {
		return nil, fail(tensor.ErrTruncated, 8, "a header of %d bytes, %d are left", size, len(data)-start)
	}
	h := &header{size: start + size}
	s := &scanner{text: string(data[start:h.size]), start: start}
	if err := s.header(h, small); err != nil {
		return nil, err
	}
	n, err := tensor.NumBytes(h.dtype, h.shape)
	if err != nil {
		return nil, fail(tensor.ErrCorrupt, start, "%v", err)
	}
	h.payload = n
	return h, nil
}

// scanner reads the Python literal of a header, in the form that numpy writes: a dict with a
// string, a bool and a tuple of integers.
type scanner struct {
	text  string
	at    int // in text
	start int // of text in the file
}

func (s *scanner) header(h *header, small tensor.DType) error {
	seen := map[string]bool{}
	if err := s.want('{'); err != nil {
		return err
	}
	for s.peek() != '}' {
		key, err := s.quoted()
		if err != nil {
			return err
		}
		if seen[key] {
			return s.fail(tensor.ErrCorrupt, "the key %q is there twice", key)
		}
		seen[key] = true
		if err := s.want(':'); err != nil {
			return err
		}
		switch key {
		case "descr":
			err = s.descr(h, small)
		case "fortran_order":
			h.fortran, err = s.boolean()
		case "shape":
			h.shape, err = s.shape()
		default:
			err = s.fail(tensor.ErrCorrupt, "unknown key %q", key)
		}
		if err != nil {
			return err
		}
		if s.peek() != '}' {
			if err := s.want(','); err != nil {
				return err
			}
		}
	}
	s.at++
	if len(seen) != 3 {
		return s.fail(tensor.ErrCorrupt, "want the keys descr, fortran_order and shape")
	}
	if s.peek() != 0 || s.at < len(s.text) {
		return s.fail(tensor.ErrCorrupt, "%.20q after the header", s.text[s.at:])
	}
	return nil
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) want(c byte) error {
	if s.peek() != c {
		return s.fail(tensor.ErrCorrupt, "%.20q instead of %q", s.text[s.at:], c)
	}
	s.at++
	return nil
}

func (s *scanner) quoted() (string, error) {
	q := s.peek()
	if q != '\'' && q != '"' {
		return "", s.fail(tensor.ErrCorrupt, "%.20q instead of a string", s.text[s.at:])
	}
	text, _, ok := strings.Cut(s.text[s.at+1:], string(rune(q)))
	if !ok || strings.Contains(text, `\`) {
		return "", s.fail(tensor.ErrCorrupt, "%.20q is not a simple string", s.text[s.at:])
	}
	s.at += len(text) + 2
	return text, nil
}

// word reads letters and digits.
func (s *scanner) word() string {
	s.peek()
	from := s.at
	for s.at < len(s.text) && (s.text[s.at] == '-' || s.text[s.at] >= '0' && s.text[s.at] <= '9' ||
		s.text[s.at]|0x20 >= 'a' && s.text[s.at]|0x20 <= 'z') {
		s.at++
	}
	return s.text[from:s.at]
}

func (s *scanner) boolean() (bool, error) {
	switch w := s.word(); w {
	case "True":
		return true, nil
	case "False":
		return false, nil
	default:
		return false, s.fail(tensor.ErrCorrupt, "fortran_order is %q, want True or False", w)
	}
}

// shape reads "()", "(3,)" or "(2, 3)".
func (s *scanner) shape() ([]int, error) {
	if err := s.want('('); err != nil {
		return nil, err
	}
	shape := []int{}
	comma := true
	for s.peek() != ')' {
		if !comma || len(shape) == tensor.MaxRank {
			return nil, s.fail(tensor.ErrCorrupt, "shape %v continues with %.20q: want a tuple of at most %d integers",
				shape, s.text[s.at:], tensor.MaxRank)
		}
		w := s.word()
		d, err := strconv.ParseUint(strings.TrimSuffix(w, "L"), 10, strconv.IntSize-1) // Python 2 wrote 3L
		if err != nil {
			return nil, s.fail(tensor.ErrCorrupt, "shape %v continues with %.20q: want an integer that is not negative",
				shape, w)
		}
		shape = append(shape, int(d))
		if comma = s.peek() == ','; comma {
			s.at++
		}
	}
	s.at++
	if len(shape) == 1 && !comma {
		return nil, s.fail(tensor.ErrCorrupt, "shape (%d) is not a tuple", shape[0])
	}
	return shape, nil
}

// descr reads a dtype: byte order, kind and size. Lists and tuples are structured types.
func (s *scanner) descr(h *header, small tensor.DType) error {
	if c := s.peek(); c == '[' || c == '(' {
		return s.fail(tensor.ErrUnsupported,
			"descr %.60q is a structured dtype: save each field as an array of its own", s.text[s.at:])
	}
	descr, err := s.quoted()
	if err != nil {
		return err
	}
	kind := strings.TrimLeft(descr, "<>|=")
	if len(descr)-len(kind) > 1 || kind == "" {
		return s.fail(tensor.ErrCorrupt, "descr %q is not a dtype", descr)
	}
	h.big = descr[0] == '>'
	if d, ok := dtypes[kind]; ok {
		h.dtype = d
		return nil
	}
	if kind == "V1" {
		if small == tensor.Invalid {
			return s.fail(tensor.ErrUnsupported,
				"descr %q is what numpy writes for several 8-bit floats of ml_dtypes, and which one is unknown: "+
					"say which, or save it as float32 or as .safetensors", descr)
		}
		h.dtype = small
		return nil
	}
	what, ok := kinds[kind[0]]
	if !ok {
		return s.fail(tensor.ErrCorrupt, "descr %q is not a dtype", descr)
	}
	return s.fail(tensor.ErrUnsupported, "descr %q is %s", descr, what)
}

var dtypes = map[string]tensor.DType{
	"b1": tensor.Bool, "?": tensor.Bool,
	"i1": tensor.I8, "i2": tensor.I16, "i4": tensor.I32, "i8": tensor.I64,
	"u1": tensor.U8, "u2": tensor.U16, "u4": tensor.U32, "u8": tensor.U64,
	"f1": tensor.F8E5M2, "f2": tensor.F16, "f4": tensor.F32, "f8": tensor.F64,
	"V2": tensor.BF16,
}

// kinds describes the types that cannot be read.
var kinds = map[byte]string{
	'b': "a bool of an unknown size",
	'i': "an integer of an unknown size",
	'u': "an integer of an unknown size",
	'f': "a float of more than 64 bits: save it as float64",
	'c': "complex: save real and imaginary parts",
	'V': "raw memory without a type",
	'O': "Python objects, which would have to be unpickled: save arrays of numbers",
	'S': "text", 'a': "text", 'U': "text",
	'M': "a date: save it as int64", 'm': "a duration: save it as int64",
}

func (s *scanner) fail(class error, msg string, args ...any) error {
	return fail(class, s.start+s.at, msg, args...)
}
