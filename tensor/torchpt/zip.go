package torchpt

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	maxPickle   = 64 << 20 // bytes of data.pkl
	maxInflated = 1 << 30  // bytes of all inflated records of a file
	maxDeflate  = 1032     // the largest ratio that deflate can reach

	// Sizes of the fixed parts of the headers of a zip archive.
	localHeader   = 30
	centralHeader = 46
	endHeader     = 22
)

// archive is the zip archive of torch.save: <prefix>/data.pkl, <prefix>/byteorder, and
// <prefix>/data/<key> for each storage.
type archive struct {
	prefix   string
	records  map[string]*record // by full name
	inflated int                // bytes in memory so far
	big      bool
}

type record struct {
	name    string
	offset  int64  // of the bytes in the file
	raw     []byte // as stored in the file
	deflate bool
	size    int
	content []byte // the inflated bytes
}

func decodeZip(f *tensor.File, data []byte) error {
	a, err := openArchive(data)
	if err != nil {
		return err
	}
	pickle, ok := a.records[a.prefix+"data.pkl"]
	if !ok {
		return a.noPickle()
	}
	if _, script := a.records[a.prefix+"constants.pkl"]; script {
		return format.Errorf(tensor.ErrUnsupported, -1, a.prefix+"constants.pkl",
			"this is a TorchScript archive, which has code: load it with torch.jit.load and torch.save "+
				"its state_dict()")
	}
	if pickle.size > maxPickle {
		return format.Errorf(tensor.ErrUnsupported, pickle.offset, pickle.name,
			"the pickle has %d bytes, at most %d are read", pickle.size, maxPickle)
	}
	src, offset, err := a.content(pickle)
	if err != nil {
		return err
	}
	u := newUnpickler(src, offset, pickle.name)
	root, err := u.run()
	if err != nil {
		return err
	}
	if rest := len(src) - u.pos; rest > 0 {
		return u.errorf(tensor.ErrCorrupt, "%d bytes follow the end of the pickle", rest)
	}
	return flatten(f, root, u.values, a)
}

// openArchive reads the directory and checks that the records follow each other from the first byte
// of the file.
func openArchive(data []byte) (*archive, error) {
	tail := data[max(0, len(data)-endHeader-1<<16):]
	if !bytes.Contains(tail, zipEnd) {
		return nil, format.Errorf(tensor.ErrTruncated, int64(len(data)), "",
			"the archive has no directory at its end: the file was cut off or is still being written")
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, format.Errorf(tensor.ErrCorrupt, -1, "", "%v", err)
	}
	a := &archive{records: make(map[string]*record, len(z.File))}
	order := make([]*record, 0, len(z.File))
	end := int64(len(data) - endHeader) // the last offset at which the directory can begin
	for _, f := range z.File {
		end -= centralHeader + int64(len(f.Name)+len(f.Extra)+len(f.Comment))
	}
	for _, f := range z.File {
		r, err := newRecord(f, data[:max(0, end)])
		if err != nil {
			return nil, err
		}
		if a.records[r.name] != nil {
			return nil, format.Errorf(tensor.ErrCorrupt, r.offset, r.name, "the archive has two records of this name")
		}
		a.records[r.name] = r
		order = append(order, r)
	}
	if len(order) == 0 {
		return nil, format.Errorf(tensor.ErrCorrupt, -1, "", "the archive is empty")
	}
	prefix, _, _ := strings.Cut(order[0].name, "/")
	a.prefix = prefix + "/"
	if err := checkOrder(order, data); err != nil {
		return nil, err
	}
	a.big, err = a.bigEndian()
	return a, err
}

func newRecord(f *zip.File, data []byte) (*record, error) {
	if f.Flags&1 != 0 {
		return nil, format.Errorf(tensor.ErrUnsupported, -1, f.Name, "the record is encrypted: decrypt the archive first")
	}
	if f.Method != zip.Store && f.Method != zip.Deflate {
		return nil, format.Errorf(tensor.ErrUnsupported, -1, f.Name,
			"compression method %d is not supported: torch stores records as they are", f.Method)
	}
	offset, err := f.DataOffset()
	if err != nil {
		return nil, format.Errorf(tensor.ErrCorrupt, -1, f.Name, "the header of the record: %v", err)
	}
	if offset > int64(len(data)) || f.CompressedSize64 > uint64(int64(len(data))-offset) {
		return nil, format.Errorf(tensor.ErrTruncated, offset, f.Name,
			"the record has %d bytes, which end after the records' part of the file (%d bytes)",
			f.CompressedSize64, len(data))
	}
	n := int64(f.CompressedSize64)
	r := &record{name: f.Name, offset: offset, raw: data[offset : offset+n : offset+n],
		deflate: f.Method == zip.Deflate}
	switch {
	case !r.deflate && f.UncompressedSize64 != f.CompressedSize64:
		return nil, format.Errorf(tensor.ErrCorrupt, offset, f.Name,
			"the record is stored as it is, but has two sizes: %d and %d",
			f.CompressedSize64, f.UncompressedSize64)
	case r.deflate && f.UncompressedSize64 > maxInflated:
		return nil, format.Errorf(tensor.ErrUnsupported, offset, f.Name,
			"the compressed record has %d bytes, at most %d are inflated: save it without compression",
			f.UncompressedSize64, maxInflated)
	case r.deflate && f.UncompressedSize64 > maxDeflate*(f.CompressedSize64+1):
		return nil, format.Errorf(tensor.ErrCorrupt, offset, f.Name, "%d compressed bytes cannot inflate to %d",
			f.CompressedSize64, f.UncompressedSize64)
	}
	r.size = int(f.UncompressedSize64)
	return r, nil
}

// checkOrder refuses records that overlap (each has a header before it). It also refuses an archive
// that does not begin at the start of the file, because it could be one inside a tensor of a
// truncated file.
func checkOrder(order []*record, data []byte) error {
	slices.SortStableFunc(order, func(a, b *record) int { return cmp.Compare(a.offset, b.offset) })
	end := int64(0)
	for i, r := range order {
		start := r.offset - localHeader - int64(len(r.name)) // or earlier: the header can have an extra field
		if i == 0 {
			extra := int64(binary.LittleEndian.Uint16(data[28:]))
			if start -= extra; start != 0 {
				return format.Errorf(tensor.ErrCorrupt, r.offset, r.name,
					"the first record does not begin the file: bytes were put before it, "+
						"or this is the rest of another archive")
			}
		}
		if start < end {
			return format.Errorf(tensor.ErrCorrupt, r.offset, r.name, "the record overlaps %q", order[max(0, i-1)].name)
		}
		end = r.offset + int64(len(r.raw))
	}
	return nil
}

func (a *archive) noPickle() error {
	msg := "the archive has no record \"%sdata.pkl\": it was not written by torch.save"
	for name := range a.records {
		if strings.HasSuffix(name, ".npy") {
			msg = "the archive has no record \"%sdata.pkl\", but .npy files: it is an .npz"
			break
		}
	}
	return format.Errorf(tensor.ErrCorrupt, -1, "", msg, a.prefix)
}

// bigEndian reads the byte order record, which torch writes since 2.1; earlier files are
// little-endian.
func (a *archive) bigEndian() (bool, error) {
	r, ok := a.records[a.prefix+"byteorder"]
	if !ok {
		return false, nil
	}
	b, offset, err := a.content(r)
	if err != nil {
		return false, err
	}
	switch string(b) {
	case "little":
		return false, nil
	case "big":
		return true, nil
	}
	return false, format.Errorf(tensor.ErrCorrupt, offset, r.name, "byte order is %q, want little or big",
		b[:min(len(b), 16)])
}

// content returns the bytes of a record and their offset in the file, or −1 if they had to be
// inflated.
func (a *archive) content(r *record) ([]byte, int64, error) {
	if !r.deflate {
		return r.raw, r.offset, nil
	}
	if r.content == nil {
		if r.size > maxInflated-a.inflated {
			return nil, 0, format.Errorf(tensor.ErrUnsupported, r.offset, r.name,
				"the compressed records of this file have more than %d bytes: save it without compression", maxInflated)
		}
		a.inflated += r.size
		b, err := inflate(r.raw, r.size)
		if err != nil {
			return nil, 0, format.Errorf(tensor.ErrCorrupt, r.offset, r.name, "inflate: %v", err)
		}
		r.content = b
	}
	return r.content, -1, nil
}

// inflate decompresses exactly size bytes.
func inflate(raw []byte, size int) ([]byte, error) {
	z := flate.NewReader(bytes.NewReader(raw))
	b := make([]byte, size)
	if n, err := io.ReadFull(z, b); err != nil {
		return nil, fmt.Errorf("the directory promises %d bytes, but there are %d: %w", size, n, err)
	}
	if n, err := io.ReadFull(z, make([]byte, 1)); n > 0 {
		return nil, fmt.Errorf("the record inflates to more than the %d bytes that the directory promises", size)
	} else if err != io.EOF {
		return nil, err
	}
	return b, nil
}

// storage returns the bytes of a storage. They may end with a part of an element.
func (a *archive) storage(s *storage) (content, error) {
	r, ok := a.records[a.prefix+"data/"+s.key]
	if !ok {
		return content{}, format.Errorf(tensor.ErrCorrupt, -1, a.prefix+"data/"+s.key,
			"the archive has no such record, but the pickle refers to it")
	}
	want, ok := s.bytes()
	if rest := r.size - want; !ok || rest < 0 || rest >= max(s.dtype.Size(), 1) {
		return content{}, format.Errorf(tensor.ErrCorrupt, r.offset, r.name,
			"the record has %d bytes, but the pickle declares %s", r.size, s)
	}
	b, offset, err := a.content(r)
	if err != nil {
		return content{}, err
	}
	return content{data: b[:want], offset: offset, member: r.name, big: a.big}, nil
}
