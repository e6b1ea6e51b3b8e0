package format

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"

	"github.com/goparity/goparity/tensor"
)

const (
	// maxInflated is how many bytes all compressed members of an archive may have, or maxGrowth times its size if that is more.
	maxInflated, maxGrowth = 1 << 30, 16
	// maxRatio is the largest ratio that deflate can reach.
	maxRatio = 1032

	// Sizes of the fixed parts of the headers of a zip archive.
	centralHeader = 46
	endHeader     = 22
)

// Member is a file in a zip archive.
type Member struct {
	Name     string
	Offset   int64  // of its bytes in the file
	Raw      []byte // as they are stored
	Size     int    // of the content
	deflated bool
	sum      uint32
	content  []byte // that was inflated
}

// Zip reads the index of a zip archive. Nothing is inflated.
func Zip(data []byte) (out []*Member) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		Fail(tensor.ErrTruncated, -1, "", "this begins like a zip archive, and has no directory at its end (%v): it was cut off, or is still being written", err)
	}
	end := len(data) - endHeader // the last offset at which the index can begin
	for _, f := range z.File {
		end -= centralHeader + len(f.Name) + len(f.Extra) + len(f.Comment)
	}
	limit := uint64(max(maxInflated, maxGrowth*len(data)))
	names, left := map[string]bool{}, limit
	for _, f := range z.File {
		if f.Method == zip.Deflate {
			Want(f.UncompressedSize64 <= left, tensor.ErrUnsupported, -1, f.Name,
				"the compressed members up to this one have more than %d bytes: save them without compression", limit)
			left -= f.UncompressedSize64
		}
		m := newMember(f, data[:max(0, end)])
		Want(!names[m.Name], tensor.ErrCorrupt, m.Offset, m.Name, "the archive has two members of this name")
		names[m.Name] = true
		out = append(out, m)
	}
	return out
}

func newMember(f *zip.File, data []byte) *Member {
	switch {
	case f.Flags&1 != 0:
		Fail(tensor.ErrUnsupported, -1, f.Name, "the member is encrypted: decrypt the archive first")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		Fail(tensor.ErrUnsupported, -1, f.Name, "compression method %d is not supported, only 0 (stored) and 8 (deflate)", f.Method)
	}
	at, err := f.DataOffset()
	Want(err == nil, tensor.ErrCorrupt, -1, f.Name,
		"there is no header where the index of the archive says: %v", err)
	n, size := f.CompressedSize64, f.UncompressedSize64
	m := &Member{Name: f.Name, Offset: at, deflated: f.Method == zip.Deflate, sum: f.CRC32}
	switch {
	case at > int64(len(data)) || n > uint64(int64(len(data))-at):
		Fail(tensor.ErrTruncated, at, f.Name, "the member has %d bytes, and the members' part of the file ends at %d", n, len(data))
	case !m.deflated && size != n:
		Fail(tensor.ErrCorrupt, at, f.Name, "stored without compression, but with two sizes: %d and %d", n, size)
	case m.deflated && size > maxRatio*(n+1):
		Fail(tensor.ErrCorrupt, at, f.Name, "%d compressed bytes cannot inflate to %d", n, size)
	}
	end := at + int64(n)
	m.Raw, m.Size = data[at:end:end], int(size)
	return m
}

// Content returns the bytes of a member and their offset in the file, or −1 if they had to be inflated.
func (m *Member) Content() ([]byte, int64) {
	if !m.deflated {
		return m.Raw, m.Offset
	}
	if m.content == nil {
		m.content = m.inflate()
	}
	return m.content, -1
}

// inflate decompresses as many bytes as the index promises. A checksum of 0 was left out.
func (m *Member) inflate() []byte {
	z := flate.NewReader(bytes.NewReader(m.Raw))
	b := make([]byte, m.Size)
	n, err := io.ReadFull(z, b)
	Want(err == nil, tensor.ErrCorrupt, m.Offset, m.Name,
		"inflate: the index promises %d bytes, but there are %d: %v", m.Size, n, err)
	if n, err := io.ReadFull(z, make([]byte, 1)); n > 0 {
		Fail(tensor.ErrCorrupt, m.Offset, m.Name, "there are more than the %d bytes that the index promises", m.Size)
	} else if err != io.EOF {
		Fail(tensor.ErrCorrupt, m.Offset, m.Name, "inflate: %v", err)
	}
	if sum := crc32.ChecksumIEEE(b); m.sum != 0 && sum != m.sum {
		Fail(tensor.ErrCorrupt, m.Offset, m.Name, "the checksum of the content is %08x, the index says %08x", sum, m.sum)
	}
	return b
}
