package npy

import (
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

// archive reads the members of a .npz, which is a zip file.
func (r reader) archive(path string, data []byte) (tensors []tensor.Named) {
	for _, m := range format.Zip(data) {
		if strings.HasSuffix(m.Name, "/") && m.Size == 0 {
			continue // a folder
		}
		r.member = m.Name
		name, isArray := strings.CutSuffix(m.Name, ".npy")
		switch {
		case !utf8.ValidString(m.Name):
			r.fail(tensor.ErrCorrupt, -1, "the name is not UTF-8")
		case !isArray:
			r.fail(tensor.ErrUnsupported, -1, "want members with names that end in .npy")
		}
		raw, at := m.Content()
		r.begin = at
		tensors = append(tensors, tensor.Named{Name: name, Tensor: r.array(path, raw)})
	}
	return tensors
}
