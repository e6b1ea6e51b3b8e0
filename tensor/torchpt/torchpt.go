// Package torchpt reads the tensors of files that torch.save wrote (.pt, .pth): the zip archive of
// torch 1.6 and later, and the flat file of earlier versions.
//
// The object in the file may be a tensor, a Parameter, a state dict, or any nesting of dict, list
// and tuple around tensors. The names of nested tensors are their keys and indices, joined by dots:
// "layers.0.weight". A tensor that is the whole file has the name "". Values that are not tensors
// (numbers, strings, None) are left out; a file without a tensor is an error.
//
// Tensors are views of the mapped file, with the strides, offsets and shared storages that were
// saved. Only records that another tool compressed are inflated into memory. The byteorder record
// says whether a file is big-endian. Checksums are verified of these alone, because torch can leave
// them out.
//
// The pickle in the file is read by an interpreter that knows only the constructors of tensors and
// plain containers: no code can run. Modules, classes, and sparse, quantised, nested and complex
// tensors are refused by name with [tensor.ErrUnsupported].
//
// The memory and time that a file can make the reader use are bounded. The limits are:
//
//	pickle             64 MiB, 4 Mi values, nesting of 1000
//	inflated records   1 GiB per file, or 16 times its size
//	names              1 Mi tensors, 64 MiB in all; 16 names for each value of the pickle on average,
//	                   since containers can be shared
//	expanded views     16 GiB of elements in a view larger than its storage
package torchpt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

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

const (
	// flatMagic is 0x1950a86a20f9469cfc6c, least significant byte first.
	flatMagic   = long("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
	flatVersion = 1001
)

// flatFile is the layout before torch 1.6: pickles of the magic number, version, system, object and
// storage keys, followed for each key by the number of elements as int64 and the elements, always
// little-endian.
type flatFile struct {
	data  []byte
	start map[string]int64 // of a storage's length field, by key
}

func decodeFlat(f *tensor.File, data []byte) {
	pos := 0
	next := func(what string) (*unpickler, any) {
		u := newUnpickler(data[pos:min(len(data), pos+maxPickle)], int64(pos), what)
		v := u.run()
		pos += u.pos
		return u, v
	}
	if u, v := next("magic number"); v != any(flatMagic) {
		u.corrupt("this is a pickle, but not one of torch.save: it begins with %s", describe(v))
	}
	if u, v := next("version"); v != any(int64(flatVersion)) {
		u.unsupported("the version is %s, only %d is known", describe(v), flatVersion)
	}
	next("system")
	object, root := next("object")
	u, v := next("storage keys")
	keys, ok := v.(*list)
	u.want(ok, "the storage keys are %s, want a list", describe(v))
	flat := &flatFile{data: data, start: make(map[string]int64, len(keys.items))}
	at := int64(pos)
	for _, item := range keys.items {
		key, ok := item.(string)
		u.want(ok, "a storage key is %s, want a string", describe(item))
		if _, twice := flat.start[key]; twice {
			u.corrupt("storage key %.40q is there twice", key)
		}
		s, ok := object.storages[key]
		u.want(ok, "no tensor refers to storage %.40q", key)
		flat.start[key] = at
		c := flat.storage(s)
		at = c.offset + int64(len(c.data))
	}
	if rest := int64(len(data)) - at; rest > 0 {
		format.Fail(tensor.ErrUnsupported, at, "", "%d bytes follow the last storage: save one object per file", rest)
	}
	flatten(f, root, object.values, flat)
}

func (f *flatFile) storage(s *storage) content {
	at, ok := f.start[s.key]
	left := int64(len(f.data)) - at - 8
	size, fits := s.bytes()
	switch {
	case !ok:
		format.Fail(tensor.ErrCorrupt, -1, "", "the file has no storage %.40q, but a tensor refers to it", s.key)
	case left < 0:
		format.Fail(tensor.ErrTruncated, at, "", "the file ends before storage %.40q", s.key)
	case binary.LittleEndian.Uint64(f.data[at:]) != uint64(s.numel):
		format.Fail(tensor.ErrCorrupt, at, "", "storage %.40q has %d elements, but the pickle declares %s", s.key,
			binary.LittleEndian.Uint64(f.data[at:]), s)
	case !fits || int64(size) > left:
		format.Fail(tensor.ErrTruncated, at, "", "storage %.40q has %s, but the file has %d bytes more", s.key, s, left)
	}
	at += 8
	return content{data: f.data[at : at+int64(size) : at+int64(size)], offset: at}
}

const (
	maxPickle   = 64 << 20 // bytes of data.pkl
	localHeader = 30       // bytes of the fixed part of the header before a record
)

// archive is the zip archive of torch.save: <prefix>/data.pkl, <prefix>/byteorder, and
// <prefix>/data/<key> for each storage.
type archive struct {
	prefix  string
	records map[string]*format.Member // by full name
	big     bool
}

func decodeZip(f *tensor.File, data []byte) {
	a := openArchive(data)
	pickle, ok := a.records[a.prefix+"data.pkl"]
	format.Want(ok, tensor.ErrCorrupt, -1, "",
		"the archive has no record %q: it was not written by torch.save; is it an .npz?", a.prefix+"data.pkl")
	if _, script := a.records[a.prefix+"constants.pkl"]; script {
		format.Fail(tensor.ErrUnsupported, -1, a.prefix+"constants.pkl",
			"this is a TorchScript archive, which has code: load it with torch.jit.load and torch.save its state_dict()")
	}
	format.Want(pickle.Size <= maxPickle, tensor.ErrUnsupported, pickle.Offset, pickle.Name,
		"the pickle has %d bytes, at most %d are read", pickle.Size, maxPickle)
	src, offset := pickle.Content()
	u := newUnpickler(src, offset, pickle.Name)
	root := u.run()
	if rest := len(src) - u.pos; rest > 0 {
		u.corrupt("%d bytes follow the end of the pickle", rest)
	}
	flatten(f, root, u.values, a)
}

// openArchive reads the directory and checks that the records follow each other from the first byte
// of the file.
func openArchive(data []byte) *archive {
	order := format.Zip(data)
	format.Want(len(order) > 0, tensor.ErrCorrupt, -1, "", "the archive is empty")
	a := &archive{records: make(map[string]*format.Member, len(order))}
	for _, m := range order {
		a.records[m.Name] = m
	}
	prefix, _, _ := strings.Cut(order[0].Name, "/")
	a.prefix = prefix + "/"
	checkOrder(order, data)
	a.big = a.bigEndian()
	return a
}

// checkOrder refuses records that overlap (each has a header before it). It also refuses an archive
// that does not begin at the start of the file, because it could be one inside a tensor of a
// truncated file.
func checkOrder(order []*format.Member, data []byte) {
	slices.SortStableFunc(order, func(a, b *format.Member) int { return cmp.Compare(a.Offset, b.Offset) })
	end := int64(0)
	for i, r := range order {
		start := r.Offset - localHeader - int64(len(r.Name)) // or earlier: the header can have an extra field
		if i == 0 {
			extra := int64(binary.LittleEndian.Uint16(data[28:]))
			if start -= extra; start != 0 {
				format.Fail(tensor.ErrCorrupt, r.Offset, r.Name, "the first record does not begin the file: "+
					"bytes were put before it, or this is the rest of another archive")
			}
		}
		format.Want(start >= end, tensor.ErrCorrupt, r.Offset, r.Name,
			"the record overlaps %q", order[max(0, i-1)].Name)
		end = r.Offset + int64(len(r.Raw))
	}
}

// bigEndian reads the byte order record, which torch writes since 2.1; earlier files are
// little-endian.
func (a *archive) bigEndian() bool {
	r, ok := a.records[a.prefix+"byteorder"]
	if !ok {
		return false
	}
	b, offset := r.Content()
	if order := string(b); order != "little" && order != "big" {
		format.Fail(tensor.ErrCorrupt, offset, r.Name, "byte order is %q, want little or big", b[:min(len(b), 16)])
	}
	return string(b) == "big"
}

// storage returns the bytes of a storage. They may end with a part of an element.
func (a *archive) storage(s *storage) content {
	r, ok := a.records[a.prefix+"data/"+s.key]
	format.Want(ok, tensor.ErrCorrupt, -1, a.prefix+"data/"+s.key,
		"the archive has no such record, but the pickle refers to it")
	want, ok := s.bytes()
	if rest := r.Size - want; !ok || rest < 0 || rest >= max(s.dtype.Size(), 1) {
		format.Fail(tensor.ErrCorrupt, r.Offset, r.Name, "the record has %d bytes, but the pickle declares %s", r.Size, s)
	}
	b, offset := r.Content()
	return content{data: b[:want], offset: offset, member: r.Name, big: a.big}
}
