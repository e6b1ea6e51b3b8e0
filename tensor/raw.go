package tensor

import (
	"fmt"
	"strconv"
	"strings"
)

// RawSpec says what a file without a header holds: little-endian elements in row-major order, such as MAX writes in the style BINARY.
type RawSpec struct {
	DType DType
	Shape []int // one size may be −1: it follows from the size of the file
}

// ParseRaw reads a spec as people write it: "f32:4x8", "bf16:?x384" with one size left to the file, "f32" for a flat tensor of the whole file,
// "f32:" for a scalar. The types are those of [ParseDType].
func ParseRaw(s string) (RawSpec, error) {
	name, sizes, shaped := strings.Cut(s, ":")
	d, err := ParseDType(name)
	if err != nil {
		return RawSpec{}, fmt.Errorf("tensor: raw spec %q: want DTYPE:SIZExSIZE like f32:4x8: %w", s, err)
	}
	spec := RawSpec{DType: d, Shape: []int{}}
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
				return RawSpec{}, fmt.Errorf("tensor: raw spec %q: %q is no size: want a number, or ? once", s, text)
			}
			n = int(u)
		}
		spec.Shape = append(spec.Shape, n)
	}
	if _, err := spec.resolve(-1); err != nil {
		return RawSpec{}, fmt.Errorf("tensor: raw spec %q: %w", s, err)
	}
	return spec, nil
}

// String writes the spec as ParseRaw reads it.
func (s RawSpec) String() string {
	sizes := make([]string, len(s.Shape))
	for i, d := range s.Shape {
		sizes[i] = "?"
		if d >= 0 {
			sizes[i] = strconv.Itoa(d)
		}
	}
	return s.DType.Short() + ":" + strings.Join(sizes, "x")
}

// resolve gives the shape of a file of size bytes. With a negative size only the spec itself is checked.
func (s RawSpec) resolve(size int) ([]int, error) {
	shape := clone(s.Shape)
	axis := -1
	for i, d := range shape {
		if d < 0 && axis >= 0 {
			return nil, fmt.Errorf("%s: only one size can follow from the size of the file", s)
		}
		if d < 0 {
			axis, shape[i] = i, 1
		}
	}
	n, err := NumBytes(s.DType, shape) // without the unknown axis
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

// OpenRaw maps a file without a header. Its one tensor has no name. The size of the file must be that of the spec.
func OpenRaw(path string, spec RawSpec) (*File, error) {
	return OpenFile("raw", path, func(f *File, data []byte) error {
		shape, err := spec.resolve(len(data))
		if err != nil {
			return &FormatError{Offset: -1, Msg: err.Error(), Err: ErrCorrupt}
		}
		t, err := FromSpec(Spec{DType: spec.DType, Shape: shape, Data: data, Place: Place{File: path}})
		f.Tensors = []Named{{Tensor: t}}
		return err
	})
}
