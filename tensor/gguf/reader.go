package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

// maxNested is how many lists lie in one another: a damaged header must not take time and memory.
const maxNested = 4

// reader reads a header.
type reader struct {
	data      []byte
	at        int
	big       bool
	alignment uint64
	member    string // the key or tensor that is being read
}

func (r *reader) fail(class error, msg string, args ...any) {
	format.Fail(class, int64(r.at), r.member, msg, args...)
}

// want fails unless ok.
func (r *reader) want(ok bool, class error, msg string, args ...any) {
	if !ok {
		r.fail(class, msg, args...)
	}
}

// take returns the next n bytes.
func (r *reader) take(n uint64, what string) []byte {
	if left := uint64(len(r.data) - r.at); n > left {
		r.fail(tensor.ErrTruncated, "%s of %d bytes, the file ends after %d", what, n, left)
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

// uint reads a number of up to 8 bytes.
func (r *reader) uint(size uint64) uint64 {
	var wide [8]byte // little-endian
	copy(wide[:], r.take(size, "a number"))
	if r.big {
		slices.Reverse(wide[:size])
	}
	return binary.LittleEndian.Uint64(wide[:])
}

func (r *reader) u32() uint32 { return uint32(r.uint(4)) }

func (r *reader) u64() uint64 { return r.uint(8) }

// name reads a string that has to be UTF-8.
func (r *reader) name(what string) string {
	b := r.take(r.u64(), what)
	r.want(utf8.Valid(b), tensor.ErrCorrupt, "%s %.40q is not UTF-8", what, b)
	return string(b)
}

// preamble reads the part before the keys.
func (r *reader) preamble() (tensors, keys uint64) {
	r.alignment = alignment
	if n := min(len(r.data), len(magic)); string(r.data[:n]) != magic[:n] {
		r.fail(tensor.ErrCorrupt, "begins with % x, a .gguf file with % x", r.data[:n], magic)
	}
	r.take(4, "the magic")
	version := r.u32()
	if version&0xffff == 0 && version != 0 {
		r.big, version = true, version>>24|version>>8&0xff00
	}
	if version != 2 && version != 3 {
		r.at -= 4
		r.fail(tensor.ErrUnsupported, "version %d, only 2 and 3 are read", version)
	}
	return r.u64(), r.u64()
}

// metadata reads the keys.
func (r *reader) metadata(n uint64) map[string]string {
	out := map[string]string{}
	for range n {
		at := r.at
		key := r.name("a key")
		r.member = key
		if _, twice := out[key]; twice {
			r.at = at
			r.fail(tensor.ErrCorrupt, "the key %q is there twice", key)
		}
		kind := r.u32()
		out[key] = r.value(kind, 0)
		if key == alignKey {
			a, err := strconv.ParseUint(out[key], 10, 32)
			r.want(err == nil && kinds[kind] == "u32" && a != 0 && a&(a-1) == 0, tensor.ErrCorrupt,
				"an alignment of %s, want a power of two as u32", out[key])
			r.alignment = a
		}
		r.member = ""
	}
	return out
}

// kinds are the names of the types of values, by their number.
var kinds = []string{"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "list", "u64", "i64", "f64"}

// sizes are those of the types that have one.
var sizes = []uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// value reads a value, as text: numbers and bools as Go writes them, of a list what it is of and its length.
func (r *reader) value(kind uint32, depth int) string {
	r.want(kind < uint32(len(kinds)), tensor.ErrCorrupt, "unknown type %d of a value", kind)
	switch kinds[kind] {
	case "string":
		b := r.take(r.u64(), "a string")
		if depth == 0 && !utf8.Valid(b) { // tokens need not be text
			r.fail(tensor.ErrCorrupt, "the value %.40q is not UTF-8", b)
		}
		return string(b)
	case "list":
		return r.list(depth)
	}
	size := sizes[kind]
	u := r.uint(size)
	switch unused := 64 - 8*size; kinds[kind] {
	case "i8", "i16", "i32", "i64":
		return strconv.FormatInt(int64(u<<unused)>>unused, 10)
	case "f32":
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(u))), 'g', -1, 32)
	case "f64":
		return strconv.FormatFloat(math.Float64frombits(u), 'g', -1, 64)
	case "bool":
		r.want(u <= 1, tensor.ErrCorrupt, "a bool of %d, want 0 or 1", u)
		return strconv.FormatBool(u == 1)
	}
	return strconv.FormatUint(u, 10)
}

func (r *reader) list(depth int) string {
	kind, n := r.u32(), r.u64()
	r.want(kind < uint32(len(kinds)) && depth < maxNested, tensor.ErrCorrupt,
		"a list of type %d within %d lists", kind, depth)
	if size := sizes[kind]; size == 0 {
		for range n {
			r.value(kind, depth+1)
		}
	} else if left := uint64(len(r.data) - r.at); n > left/size {
		r.fail(tensor.ErrTruncated, "a list of %d %ss, the file ends after %d bytes", n, kinds[kind], left)
	} else {
		r.take(n*size, "a list")
	}
	return fmt.Sprintf("%s[%d]", kinds[kind], n)
}

// infos reads the entries of the tensors.
func (r *reader) infos(n uint64) (out []info) {
	seen := map[string]bool{}
	for range n {
		t := info{at: int64(r.at), name: r.name("a name")}
		r.member = t.name
		r.want(!seen[t.name], tensor.ErrCorrupt, "the tensor %q is there twice", t.name)
		seen[t.name] = true
		rank := r.u32()
		r.want(rank <= tensor.MaxRank, tensor.ErrCorrupt, "%d axes, at most %d are read", rank, tensor.MaxRank)
		t.shape = make([]int, rank)
		for a := range t.shape {
			d := r.u64()
			r.want(d <= math.MaxInt, tensor.ErrCorrupt, "axis %d has size %d", a, d)
			t.shape[len(t.shape)-1-a] = int(d)
		}
		t.code, t.offset = r.u32(), r.u64()
		t.resolve(r.big)
		out = append(out, t)
		r.member = ""
	}
	return out
}
