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

func decodeFlat(f *tensor.File, data []byte) error {
	pos := 0
	next := func(what string) (*unpickler, any, error) {
		src := data[pos:min(len(data), pos+maxPickle)]
		u := newUnpickler(src, int64(pos), what)
		v, err := u.run()
		pos += u.pos
		return u, v, err
	}
	u, v, err := next("magic number")
	if err != nil {
		return err
	}
	if v != any(flatMagic) {
		return u.errorf(tensor.ErrCorrupt, "this is a pickle, but not one of torch.save: it begins with %s",
			describe(v))
	}
	if u, v, err = next("version"); err != nil {
		return err
	} else if v != any(int64(flatVersion)) {
		return u.errorf(tensor.ErrUnsupported, "the version is %s, only %d is known", describe(v), flatVersion)
	}
	if _, _, err = next("system"); err != nil {
		return err
	}
	object, root, err := next("object")
	if err != nil {
		return err
	}
	u, v, err = next("storage keys")
	if err != nil {
		return err
	}
	keys, ok := v.(*list)
	if !ok {
		return u.errorf(tensor.ErrCorrupt, "the storage keys are %s, want a list", describe(v))
	}
	flat := &flatFile{data: data, start: make(map[string]int64, len(keys.items))}
	at := int64(pos)
	for _, item := range keys.items {
		key, ok := item.(string)
		if !ok {
			return u.errorf(tensor.ErrCorrupt, "a storage key is %s, want a string", describe(item))
		}
		if _, twice := flat.start[key]; twice {
			return u.errorf(tensor.ErrCorrupt, "storage key %.40q is there twice", key)
		}
		s, ok := object.storages[key]
		if !ok {
			return u.errorf(tensor.ErrCorrupt, "no tensor refers to storage %.40q", key)
		}
		if s.dtype.DType == tensor.Invalid {
			return format.Errorf(tensor.ErrUnsupported, at, "", "storage %.40q is %s, which cannot be compared: %s",
				key, s.dtype.name, instead(s.dtype.name))
		}
		flat.start[key] = at
		c, err := flat.storage(s)
		if err != nil {
			return err
		}
		at = c.offset + int64(len(c.data))
	}
	if rest := int64(len(data)) - at; rest > 0 {
		return format.Errorf(tensor.ErrUnsupported, at, "", "%d bytes follow the last storage: save one object per file",
			rest)
	}
	return flatten(f, root, object.values, flat)
}

func (f *flatFile) storage(s *storage) (content, error) {
	at, ok := f.start[s.key]
	if !ok {
		return content{}, format.Errorf(tensor.ErrCorrupt, -1, "", "the file has no storage %.40q, but a tensor refers to it",
			s.key)
	}
	left := int64(len(f.data)) - at - 8
	if left < 0 {
		return content{}, format.Errorf(tensor.ErrTruncated, at, "", "the file ends before storage %.40q", s.key)
	}
	if n := binary.LittleEndian.Uint64(f.data[at:]); n != uint64(s.numel) {
		return content{}, format.Errorf(tensor.ErrCorrupt, at, "",
			"storage %.40q has %d elements, but the pickle declares %s", s.key, n, s)
	}
	size, ok := s.bytes()
	if !ok || int64(size) > left {
		return content{}, format.Errorf(tensor.ErrTruncated, at, "", "storage %.40q has %s, but the file has %d bytes more",
			s.key, s, left)
	}
	at += 8
	return content{data: f.data[at : at+int64(size) : at+int64(size)], offset: at}, nil
}
