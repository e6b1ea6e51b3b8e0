// Package raw reads files without a header, such as those that Modular MAX writes in the print
// style BINARY: the elements of one tensor, little-endian and in row-major order. A [Spec] says
// their type and shape.
package raw

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

// Spec says what is in a file.
type Spec struct {
	DType tensor.DType
	Shape []int // one size may be −1 and follows from the size of the file
}

// Parse reads a spec as people write it: "f32:4x8", "bf16:?x384" with one size that follows from
// the file, "f32" for a flat tensor of the whole file, "f32:" for a scalar. The types are those of
// [tensor.ParseDType].
func Parse(s string) (Spec, error) {
	name, sizes, shaped := strings.Cut(s, ":")
	d, err := tensor.ParseDType(name)
	if err != nil {
		return Spec{}, fmt.Errorf("raw: spec %q: want DTYPE:SIZExSIZE like f32:4x8: %w", s, err)
	}
	spec := Spec{DType: d, Shape: []int{}}
	if !shaped {
		spec.Shape = []int{-1}
		return spec, nil
	}
	if sizes = strings.TrimSpace(sizes); sizes == "" {
		return spec, nil
	}
	for text := range strings.SplitSeq(sizes, "x") {
		n := -1
		if text = strings.TrimSpace(text); text != "?" {
			u, err := strconv.ParseUint(text, 10, strconv.IntSize-1)
			if err != nil {
				return Spec{}, fmt.Errorf("raw: spec %q: %q is not a size: want a number, or ? once", s, text)
			}
			n = int(u)
		}
		spec.Shape = append(spec.Shape, n)
	}
	if _, err := spec.resolve(-1); err != nil {
		return Spec{}, fmt.Errorf("raw: spec %q: %w", s, err)
	}
	return spec, nil
}

// String formats the spec as [Parse] reads it.
func (s Spec) String() string {
	sizes := make([]string, len(s.Shape))
	for i, d := range s.Shape {
		sizes[i] = "?"
		if d >= 0 {
			sizes[i] = strconv.Itoa(d)
		}
	}
	return s.DType.Short() + ":" + strings.Join(sizes, "x")
}

// resolve returns the shape of a file of size bytes. If size is negative, only the spec itself is
// checked.
func (s Spec) resolve(size int) ([]int, error) {
	shape := slices.Clone(s.Shape)
	axis := -1
	for i, d := range shape {
		if d < 0 && axis >= 0 {
			return nil, fmt.Errorf("%s: only one size can follow from the size of the file", s)
		}
		if d < 0 {
			axis, shape[i] = i, 1
		}
	}
	n, err := tensor.NumBytes(s.DType, shape) // without the unknown axis
	switch {
	case err != nil || size < 0:
		return nil, err
	case axis < 0 && n != size:
		return nil, fmt.Errorf("%s takes %d bytes, the file has %d", s, n, size)
	case axis >= 0 && (n == 0 || size%n != 0):
		return nil, fmt.Errorf("%s takes a multiple of %d bytes, the file has %d", s, n, size)
	case axis >= 0:
		shape[axis] = size / n
	}
	return shape, nil
}

// Open maps a file, whose size must be that of the spec. Its only tensor has no name. Every error
// is a [*tensor.FormatError].
func Open(path string, s Spec) (*tensor.File, error) { return format.Open(name, path, s.decode) }

// Decode is Open for content in memory, which errors call file. The tensor is a view of data.
func Decode(file string, data []byte, s Spec) (*tensor.File, error) {
	return format.Decode(name, file, data, s.decode)
}

const name = "raw"

func (s Spec) decode(f *tensor.File, data []byte) {
	shape, err := s.resolve(len(data))
	format.Want(err == nil, tensor.ErrCorrupt, -1, "", "%v", err)
	t := format.Tensor(tensor.Spec{DType: s.DType, Shape: shape, Data: data, Place: tensor.Place{File: f.Path}}, -1, "")
	f.Tensors = []tensor.Named{{Tensor: t}}
}
