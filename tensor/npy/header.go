package npy

import (
	"encoding/binary"
	"math"
	"regexp"
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

// header reads the beginning of an array.
func (r reader) header(data []byte) *header {
	if n := min(len(data), len(magic)); string(data[:n]) != magic[:n] {
		r.fail(tensor.ErrCorrupt, 0, "begins with %q, a .npy file with %q", data[:n], magic)
	}
	if len(data) < 12 {
		r.fail(tensor.ErrTruncated, len(data), "the file ends within the header")
	}
	var start, size int
	switch v := [2]byte{data[6], data[7]}; v {
	case [2]byte{1, 0}:
		start, size = 10, int(binary.LittleEndian.Uint16(data[8:]))
	case [2]byte{2, 0}, [2]byte{3, 0}:
		n := binary.LittleEndian.Uint32(data[8:])
		start, size = 12, int(min(n, math.MaxInt32))
	default:
		r.fail(tensor.ErrUnsupported, 6, "version %d.%d of the format, known are 1.0, 2.0 and 3.0", v[0], v[1])
	}
	if size > len(data)-start {
		r.fail(tensor.ErrTruncated, 8, "a header of %d bytes, %d are left", size, len(data)-start)
	}
	h := &header{size: start + size}
	r.dict(h, string(data[start:h.size]), start)
	n, err := tensor.NumBytes(h.dtype, h.shape)
	if err != nil {
		r.fail(tensor.ErrCorrupt, start, "%v", err)
	}
	h.payload = n
	return h
}

// A header is a Python dict in the form that numpy writes: a string, a bool and a tuple of integers.
var (
	entry = regexp.MustCompile(`^\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*:\s*('[^'\\]*'|"[^"\\]*"|\([^()]*\)|\w+)\s*(,\s*\}|,|\})`)
	// structured begins with the fields of a structured type, a list or a tuple.
	structured = regexp.MustCompile(`^\s*['"]descr['"]\s*:\s*[\[(]`)
)

const space = " \t\r\n"

// dict reads the text of a header, which begins at start in the array.
func (r reader) dict(h *header, text string, start int) {
	at := len(text) - len(strings.TrimLeft(text, space))
	fail := func(class error, msg string, args ...any) { r.fail(class, start+at, msg, args...) }
	if !strings.HasPrefix(text[at:], "{") {
		fail(tensor.ErrCorrupt, "%.20q instead of '{'", text[at:])
	}
	seen := map[string]bool{}
	at++
	for last := false; !last; {
		m := entry.FindStringSubmatch(text[at:])
		switch {
		case m != nil:
		case structured.MatchString(text[at:]):
			fail(tensor.ErrUnsupported, "%.60q is a structured dtype: save each field as an array of its own", text[at:])
		default:
			fail(tensor.ErrCorrupt, "%.40q instead of a string, a bool or a tuple and its key", text[at:])
		}
		key, value := m[1]+m[2], m[3]
		if seen[key] {
			fail(tensor.ErrCorrupt, "the key %q is there twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr(value, r.small, fail)
		case "fortran_order":
			if h.fortran = value == "True"; !h.fortran && value != "False" {
				fail(tensor.ErrCorrupt, "fortran_order is %q, want True or False", value)
			}
		case "shape":
			h.sizes(value, fail)
		default:
			fail(tensor.ErrCorrupt, "unknown key %q", key)
		}
		at += len(m[0])
		last = strings.HasSuffix(m[0], "}")
	}
	if len(seen) != 3 {
		fail(tensor.ErrCorrupt, "want the keys descr, fortran_order and shape")
	}
	if rest := strings.TrimLeft(text[at:], space); rest != "" {
		fail(tensor.ErrCorrupt, "%.20q after the header", rest)
	}
}

// sizes reads "()", "(3,)" or "(2, 3)".
func (h *header) sizes(tuple string, fail func(class error, msg string, args ...any)) {
	inner, ok := strings.CutPrefix(tuple, "(")
	if !ok {
		fail(tensor.ErrCorrupt, "%.20q instead of '('", tuple)
	}
	h.shape = []int{}
	if inner = strings.Trim(inner, space+")"); inner == "" {
		return
	}
	list, comma := strings.CutSuffix(inner, ",")
	if !comma && !strings.Contains(list, ",") {
		fail(tensor.ErrCorrupt, "shape (%.20s) is not a tuple", list)
	}
	for w := range strings.SplitSeq(list, ",") {
		w = strings.Trim(w, space)
		d, err := strconv.ParseUint(strings.TrimSuffix(w, "L"), 10, strconv.IntSize-1) // Python 2 wrote 3L
		if err != nil || len(h.shape) == tensor.MaxRank {
			fail(tensor.ErrCorrupt, "shape %v continues with %.20q: want at most %d integers that are not negative",
				h.shape, w, tensor.MaxRank)
		}
		h.shape = append(h.shape, int(d))
	}
}

// descr reads a dtype: byte order, kind and size.
func (h *header) descr(text string, small tensor.DType, fail func(class error, msg string, args ...any)) {
	descr := strings.Trim(text, `'"`)
	kind := strings.TrimLeft(descr, "<>|=")
	if descr == text || len(descr)-len(kind) > 1 {
		fail(tensor.ErrCorrupt, "descr %.20s is not a dtype", text)
	}
	h.big = strings.HasPrefix(descr, ">")
	if h.dtype = dtypes[kind]; kind == "V1" {
		h.dtype = small
	}
	switch {
	case h.dtype != tensor.Invalid:
	case kind == "V1":
		fail(tensor.ErrUnsupported, "descr %q is what numpy writes for several 8-bit floats of ml_dtypes, and which "+
			"one is unknown: say which, or save it as float32 or as .safetensors", descr)
	default:
		fail(tensor.ErrUnsupported, "descr %q is no bool, integer or float of at most 64 bits: save real and imaginary parts of complex numbers, "+
			"dates as int64; Python objects are not unpickled", descr)
	}
}

var dtypes = map[string]tensor.DType{
	"b1": tensor.Bool, "?": tensor.Bool,
	"i1": tensor.I8, "i2": tensor.I16, "i4": tensor.I32, "i8": tensor.I64,
	"u1": tensor.U8, "u2": tensor.U16, "u4": tensor.U32, "u8": tensor.U64,
	"f1": tensor.F8E5M2, "f2": tensor.F16, "f4": tensor.F32, "f8": tensor.F64,
	"V2": tensor.BF16,
}
