package torchpt

import (
	"encoding/binary"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

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
	if !ok {
		u.corrupt("the storage keys are %s, want a list", describe(v))
	}
	flat := &flatFile{data: data, start: make(map[string]int64, len(keys.items))}
	at := int64(pos)
	for _, item := range keys.items {
		key, ok := item.(string)
		if !ok {
			u.corrupt("a storage key is %s, want a string", describe(item))
		}
		if _, twice := flat.start[key]; twice {
			u.corrupt("storage key %.40q is there twice", key)
		}
		s, ok := object.storages[key]
		if !ok {
			u.corrupt("no tensor refers to storage %.40q", key)
		}
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
