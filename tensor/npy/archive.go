package npy

import (
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

// archive reads the members of a .npz, which is a zip file. The compressed ones may have 1 GiB, or 16 times
// the archive's size if that is more.
func (r reader) archive(path string, data []byte) (tensors []tensor.Named, err error) {
	members, err := format.Zip(data, max(format.MaxInflated, 16*int64(len(data))))
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if strings.HasSuffix(m.Name, "/") && m.Size == 0 {
			continue // a folder
		}
		t, err := r.member(path, m)
		if err != nil {
			return nil, format.In(m.Name, err)
		}
		tensors = append(tensors, tensor.Named{Name: strings.TrimSuffix(m.Name, ".npy"), Tensor: t})
	}
	return tensors, nil
}

func (r reader) member(path string, m *format.Member) (*tensor.Tensor, error) {
	switch {
	case !utf8.ValidString(m.Name):
		return nil, fail(tensor.ErrCorrupt, -1, "the name is not UTF-8")
	case !strings.HasSuffix(m.Name, ".npy"):
		return nil, fail(tensor.ErrUnsupported, -1, "want members with names that end in .npy")
	}
	raw, at, err := m.Content()
	if err != nil {
		return nil, err
	}
	return r.array(raw, tensor.Place{File: path, Offset: at})
}
