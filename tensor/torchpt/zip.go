package torchpt

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

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
	if !ok {
		format.Fail(tensor.ErrCorrupt, -1, "", "the archive has no record %q: it was not written by torch.save; is it an .npz?", a.prefix+"data.pkl")
	}
	if _, script := a.records[a.prefix+"constants.pkl"]; script {
		format.Fail(tensor.ErrUnsupported, -1, a.prefix+"constants.pkl",
			"this is a TorchScript archive, which has code: load it with torch.jit.load and torch.save its state_dict()")
	}
	if pickle.Size > maxPickle {
		format.Fail(tensor.ErrUnsupported, pickle.Offset, pickle.Name,
			"the pickle has %d bytes, at most %d are read", pickle.Size, maxPickle)
	}
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
	if len(order) == 0 {
		format.Fail(tensor.ErrCorrupt, -1, "", "the archive is empty")
	}
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
		if start < end {
			format.Fail(tensor.ErrCorrupt, r.Offset, r.Name, "the record overlaps %q", order[max(0, i-1)].Name)
		}
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
	if !ok {
		format.Fail(tensor.ErrCorrupt, -1, a.prefix+"data/"+s.key, "the archive has no such record, but the pickle refers to it")
	}
	want, ok := s.bytes()
	if rest := r.Size - want; !ok || rest < 0 || rest >= max(s.dtype.Size(), 1) {
		format.Fail(tensor.ErrCorrupt, r.Offset, r.Name, "the record has %d bytes, but the pickle declares %s", r.Size, s)
	}
	b, offset := r.Content()
	return content{data: b[:want], offset: offset, member: r.Name, big: a.big}
}
