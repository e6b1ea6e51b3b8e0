package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
)

const (
	maxInflated = 1 << 30 // bytes of all compressed members; 16 times the archive's size if that is more
	maxRatio    = 1032    // the largest ratio that deflate can reach
	maxHeader   = 1 << 16 // bytes of the header of a compressed member; numpy reads 10,000
)

// archive reads the members of a .npz, which is a zip file.
func (r reader) archive(path string, data []byte) ([]tensor.Named, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fail(tensor.ErrCorrupt, -1,
			"begins like a .npz, but is not a zip archive: %v; is it complete?", err)
	}
	limit := uint64(max(maxInflated, 16*int64(len(data))))
	budget := limit
	for _, m := range z.File {
		if m.Method != zip.Deflate {
			continue
		}
		if m.UncompressedSize64 > budget {
			return nil, fail(tensor.ErrUnsupported, -1,
				"the compressed members up to %q take more than %d bytes: save them uncompressed (np.savez)",
				m.Name, limit)
		}
		budget -= m.UncompressedSize64
	}
	seen := map[string]bool{}
	var tensors []tensor.Named
	for _, m := range z.File {
		if strings.HasSuffix(m.Name, "/") && m.UncompressedSize64 == 0 {
			continue // a folder
		}
		t, err := r.member(path, data, m)
		name := strings.TrimSuffix(m.Name, ".npy")
		if err == nil && seen[name] {
			err = fail(tensor.ErrCorrupt, -1, "two members have this name")
		}
		if err != nil {
			var fe *tensor.FormatError
			if !errors.As(err, &fe) {
				fe = &tensor.FormatError{Offset: -1, Msg: err.Error(), Err: tensor.ErrCorrupt}
			}
			fe.Member = m.Name
			return nil, fe
		}
		seen[name] = true
		tensors = append(tensors, tensor.Named{Name: name, Tensor: t})
	}
	return tensors, nil
}

func (r reader) member(path string, data []byte, m *zip.File) (*tensor.Tensor, error) {
	switch {
	case !utf8.ValidString(m.Name):
		return nil, fail(tensor.ErrCorrupt, -1, "the name is not UTF-8")
	case !strings.HasSuffix(m.Name, ".npy"):
		return nil, fail(tensor.ErrUnsupported, -1, "want members with names that end in .npy")
	case m.Flags&1 != 0:
		return nil, fail(tensor.ErrUnsupported, -1, "the member is encrypted")
	}
	at, err := m.DataOffset()
	if err != nil {
		return nil, fail(tensor.ErrCorrupt, -1, "there is no header where the index of the archive says: %v", err)
	}
	if at > int64(len(data)) || m.CompressedSize64 > uint64(int64(len(data))-at) {
		return nil, fail(tensor.ErrTruncated, int(at), "%d bytes want a larger file than %d bytes",
			m.CompressedSize64, len(data))
	}
	switch m.Method {
	case zip.Store:
		if m.CompressedSize64 != m.UncompressedSize64 {
			return nil, fail(tensor.ErrCorrupt, int(at), "stored without compression, but with sizes %d and %d",
				m.CompressedSize64, m.UncompressedSize64)
		}
		end := at + int64(m.CompressedSize64)
		return r.array(data[at:end:end], tensor.Place{File: path, Offset: at})
	case zip.Deflate:
		raw, err := r.inflate(m)
		if err != nil {
			return nil, err
		}
		return r.array(raw, tensor.Place{File: path, Offset: -1})
	}
	return nil, fail(tensor.ErrUnsupported, int(at), "compression method %d, known are 0 (stored) and 8 (deflate)",
		m.Method)
}

// inflate returns a compressed member. It allocates no more than its header declares, and no more
// than its compressed bytes can inflate to.
func (r reader) inflate(m *zip.File) ([]byte, error) {
	size := m.UncompressedSize64
	if size/maxRatio > m.CompressedSize64 {
		return nil, fail(tensor.ErrCorrupt, -1, "%d compressed bytes cannot become %d", m.CompressedSize64, size)
	}
	in, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := make([]byte, min(size, maxHeader))
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, fmt.Errorf("inflate: %w", err)
	}
	h, err := parseHeader(head, r.small)
	if err != nil {
		return nil, moved(err, -1)
	}
	if want := uint64(h.size) + uint64(h.payload); want != size {
		return nil, fail(tensor.ErrCorrupt, -1, "%s%s takes %d bytes with its header, the archive says %d",
			h.dtype, tensor.FormatShape(h.shape), want, size)
	}
	raw := append(make([]byte, 0, size), head...)[:size]
	if _, err := io.ReadFull(in, raw[len(head):]); err != nil {
		return nil, fmt.Errorf("inflate: %w", err)
	}
	if _, err := io.ReadFull(in, make([]byte, 1)); err != io.EOF { // at the end the checksum is verified
		return nil, fmt.Errorf("inflate: the content is not what the archive declares: %w", err)
	}
	return raw, nil
}
