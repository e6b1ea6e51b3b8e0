// Package tensor describes one tensor: element type, shape, strides, and a read-only view of its
// bytes where they are, usually in a mapped file. Nothing is copied or converted before it is
// compared, but for packed weights, which are computed when they are read.
//
// Each file format is a subpackage: torchpt, maxckpt, safetensors, gguf, npy and raw. Open maps a
// file, Decode reads bytes in memory, and both return a [File].
//
// A row is everything at one index of all axes but the last, usually a token. Elements are numbered
// in row-major order, from 0.
package tensor

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// MaxRank is the largest number of axes of a tensor.
const MaxRank = 64

// Place says where the bytes of a tensor come from.
type Place struct {
	File   string // path, as given; "" for a tensor made in memory
	Offset int64  // of the storage in the file; −1 if it is compressed there
}

// A Tensor is a typed, strided, read-only view of bytes. It is immutable and safe for concurrent
// use, as long as its file is open.
type Tensor struct {
	dtype   DType
	shape   []int
	strides []int         // in elements, never negative; 0 broadcasts
	data    []byte        // the storage
	read    func() []byte // returns the storage instead, see Deferred; nil for data
	base    int           // byte offset of element [0, 0, …] in the storage
	packed  *packed       // how elements follow from the storage; nil if they lie there
	place   Place
}

// Spec describes a tensor over existing bytes for [FromSpec].
type Spec struct {
	DType     DType
	Shape     []int
	Strides   []int  // in elements, not negative; nil for contiguous row-major
	Data      []byte // the storage; it is not copied unless it is big-endian
	Offset    int    // of the first element in Data, in elements
	BigEndian bool   // the most significant byte of an element comes first
	Place     Place
	// Packing says how the elements follow from Data, if they do not lie there. Then DType is a
	// float of 16 or 32 bits, and Strides, Offset and BigEndian are not set.
	Packing *Packing
}

// FromSpec returns the tensor of a description. The error is for an impossible shape or strides,
// and for an element that would be outside Data.
func FromSpec(s Spec) (*Tensor, error) {
	if s.DType == Invalid || s.DType >= numDTypes {
		return nil, fmt.Errorf("invalid dtype %d", s.DType)
	}
	n, err := NumBytes(s.DType, s.Shape)
	if err != nil {
		return nil, err
	}
	if s.Packing != nil {
		return fromPacking(s, n/s.DType.Size())
	}
	t := &Tensor{dtype: s.DType, shape: clone(s.Shape), data: s.Data, place: s.Place}
	if s.Strides == nil {
		t.strides = rowMajor(s.Shape)
	} else if len(s.Strides) != len(s.Shape) {
		return nil, fmt.Errorf("%d strides for %d axes", len(s.Strides), len(s.Shape))
	} else {
		t.strides = clone(s.Strides)
	}
	for _, st := range t.strides {
		if st < 0 {
			return nil, fmt.Errorf("strides %v: a negative stride is not supported", t.strides)
		}
	}
	size := s.DType.Size()
	if s.Offset < 0 || s.Offset > len(s.Data)/size {
		return nil, fmt.Errorf("storage offset %d is outside the storage of %d elements", s.Offset, len(s.Data)/size)
	}
	t.base = s.Offset * size
	if n == 0 {
		return t, nil
	}
	last, ok := lastOffset(t.shape, t.strides)
	elems := len(s.Data) / size
	if !ok || last >= elems-s.Offset {
		return nil, fmt.Errorf("shape %s with strides %v from element %d does not fit the storage of %d "+
			"elements (%d bytes)",
			FormatShape(s.Shape), t.strides, s.Offset, elems, len(s.Data))
	}
	if s.BigEndian {
		t.data = swapped(s.Data, size)
	}
	return t, nil
}

// swapped returns a copy of elements of size bytes with their bytes in the other order.
func swapped(data []byte, size int) []byte {
	out := bytes.Clone(data)
	for ; len(data) >= size; data = data[size:] {
		slices.Reverse(out[len(out)-len(data):][:size])
	}
	return out
}

// New returns a contiguous little-endian tensor over data, which is not copied. The error is for
// data of another size than the shape's.
func New(d DType, shape []int, data []byte) (*Tensor, error) {
	n, err := NumBytes(d, shape)
	if err != nil {
		return nil, err
	}
	if n != len(data) {
		return nil, fmt.Errorf("%s of shape %s needs %d bytes, got %d", d, FormatShape(shape), n, len(data))
	}
	return FromSpec(Spec{DType: d, Shape: shape, Data: data})
}

// NumElems returns the product of the shape, 1 for a scalar. The error is for negative sizes, more
// than [MaxRank] axes and overflow.
func NumElems(shape []int) (int, error) {
	if len(shape) > MaxRank {
		return 0, fmt.Errorf("%d axes, at most %d are read", len(shape), MaxRank)
	}
	zero := false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %s has a negative size", FormatShape(shape))
		}
		zero = zero || d == 0
	}
	if zero {
		return 0, nil
	}
	n := uint64(1)
	for _, d := range shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt {
			return 0, fmt.Errorf("shape %s has more elements than can be addressed", FormatShape(shape))
		}
		n = lo
	}
	return int(n), nil
}

// NumBytes returns the size in bytes of a contiguous tensor. The errors are those of [NumElems].
func NumBytes(d DType, shape []int) (int, error) {
	n, err := NumElems(shape)
	if err != nil {
		return 0, err
	}
	if d.Size() > 1 && n > math.MaxInt/d.Size() {
		return 0, fmt.Errorf("shape %s of %s has more bytes than can be addressed", FormatShape(shape), d)
	}
	return n * d.Size(), nil
}

// DType returns the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the size of each axis, outermost first; a scalar has none. The caller must not
// change it.
func (t *Tensor) Shape() []int { return t.shape }

// Strides returns the distance between neighbours along each axis, in elements. A stride of 0
// repeats an element. The caller must not change it.
func (t *Tensor) Strides() []int { return t.strides }

// Place returns where the bytes come from.
func (t *Tensor) Place() Place { return t.place }

// Len returns the number of elements: 1 for a scalar, 0 if an axis is empty.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	return n
}

// RowLen returns the number of elements in a row, which is the size of the last axis, or 1 for a
// scalar.
func (t *Tensor) RowLen() int {
	if len(t.shape) == 0 {
		return 1
	}
	return t.shape[len(t.shape)-1]
}

// Contiguous reports whether the elements are stored in row-major order without gaps.
func (t *Tensor) Contiguous() bool {
	want := 1
	for i := len(t.shape) - 1; i >= 0; i-- {
		if t.shape[i] != 1 && t.strides[i] != want {
			return t.Len() == 0
		}
		want *= t.shape[i]
	}
	return true
}

// Bytes returns the elements as stored in the file, without a copy. ok is false if they are not
// contiguous, or packed.
func (t *Tensor) Bytes() (data []byte, ok bool) {
	if !t.Contiguous() || t.packed != nil {
		return nil, false
	}
	return t.storage()[t.base : t.base+t.Len()*t.dtype.Size()], true
}

func (t *Tensor) storage() []byte {
	if t.read != nil {
		return t.read()
	}
	return t.data
}

// Deferred returns the tensor with its elements read whenever they are needed and not held in memory. read returns all
// of them, little-endian and in row-major order.
func (t *Tensor) Deferred(read func() []byte) *Tensor {
	return &Tensor{dtype: t.dtype, shape: t.shape, strides: rowMajor(t.shape), read: read, place: t.place}
}

// String returns type and shape: "float32[1 13 384]".
func (t *Tensor) String() string { return t.dtype.String() + FormatShape(t.shape) }

// FormatShape formats a shape as reports do: "[1 13 384]".
func FormatShape(shape []int) string { return strings.TrimSpace(fmt.Sprint(shape)) }

func clone(s []int) []int { return append(make([]int, 0, len(s)), s...) }

func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(shape[i], 1)
	}
	return s
}

// lastOffset returns the largest element offset of a non-empty view. ok is false on overflow.
func lastOffset(shape, strides []int) (last int, ok bool) {
	for i, d := range shape {
		hi, span := bits.Mul64(uint64(d-1), uint64(strides[i]))
		if hi != 0 || span > math.MaxInt/2 || last > math.MaxInt/2 {
			return 0, false
		}
		last += int(span)
	}
	return last, true
}
