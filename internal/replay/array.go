package replay

import (
	"math"
	"slices"
	"unsafe"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// Array is a strided view of numbers. It is not changed once it is made, and views share storage.
//
// The storage is one of three: floats of up to 32 bits lie in f, those of 16 bits of a file in h, as
// they are there; all others in d: float64, bools as 0 and 1, integers, which are exact up to 2⁵³,
// and any float where results are not rounded ([Mode].Wide).
type Array struct {
	dtype   tensor.DType
	shape   []int
	strides []int
	off     int
	number  bool // an argument that is a Python number, and no tensor
	complex bool // the last axis of size 2, which shape does not have, is real and imaginary part

	f []float32
	d []float64
	h []uint16
	// half is the type of what lies in h; dtype may be a wider one by now.
	half tensor.DType
}

// newArray returns zeros. Floats lie in float64 if they are wide.
func newArray(dtype tensor.DType, shape []int, wide bool) *Array {
	n, err := tensor.NumElems(shape)
	switch {
	case err != nil:
		fail("%v", err)
	case n > maxElements:
		fail("%v has more than %d elements", shape, maxElements)
	}
	a := &Array{dtype: dtype, shape: shape, strides: packed(shape)}
	switch {
	case dtype == tensor.Invalid:
		fail("a type without arithmetic")
	case dtype.IsFloat() && dtype != tensor.F64 && !wide:
		a.f = make([]float32, n)
	default:
		a.d = make([]float64, n)
	}
	return a
}

// like returns zeros in which numbers of an array can be put as they are.
func like(a *Array, shape []int) *Array {
	if a.complex {
		return newArray(a.dtype, append(slices.Clone(shape), 2), a.d != nil).asComplex()
	}
	return newArray(a.dtype, shape, a.d != nil)
}

// arrayOf returns an array of numbers in row-major order, which it keeps.
func arrayOf[T floating](shape []int, x []T) *Array {
	a := &Array{dtype: tensor.F32, shape: shape, strides: packed(shape)}
	switch x := any(x).(type) {
	case []float32:
		a.f = x
	case []float64:
		a.dtype, a.d = tensor.F64, x
	}
	return a
}

// Of returns an array of a type with numbers in row-major order, which are rounded to it.
func Of(dtype tensor.DType, shape []int, x []float64) (a *Array, err error) {
	err = Attempt(func() error {
		a = newArray(dtype, shape, false)
		if len(x) != a.Len() {
			fail("%d numbers for shape %v", len(x), shape)
		}
		a.write(x, 0)
		return nil
	})
	return a, err
}

// FromTensor returns the elements of a tensor: without a copy where they are floats of 16, 32 or 64
// bits and lie in row-major order, so that the array lives as long as the tensor's file.
func FromTensor(t *tensor.Tensor) (*Array, error) {
	a := &Array{dtype: t.DType(), shape: t.Shape(), strides: packed(t.Shape()), half: t.DType()}
	data, lies := t.Bytes()
	at := unsafe.Pointer(unsafe.SliceData(data))
	lies = lies && len(data) > 0 && uintptr(at)%uintptr(t.DType().Size()) == 0
	n := t.Len()
	switch d := t.DType(); {
	case lies && d == tensor.F32:
		a.f = unsafe.Slice((*float32)(at), n)
	case lies && d == tensor.F64:
		a.d = unsafe.Slice((*float64)(at), n)
	case lies && (d == tensor.BF16 || d == tensor.F16):
		a.h = unsafe.Slice((*uint16)(at), n)
	case d.IsFloat() && d != tensor.F64:
		a.f = make([]float32, n)
		t.Float32s(a.f, 0)
	default:
		a.d = make([]float64, n)
		t.Float64s(a.d, 0)
	}
	return a, nil
}

// Tensor returns the elements as a tensor: floats of up to 32 bits as float32, which holds them exactly,
// float64, bools, and all integers as int64.
func (a *Array) Tensor() (*tensor.Tensor, error) {
	switch {
	case a.dtype == tensor.F64:
		return tensor.Of(a.Floats(), a.shape...)
	case a.isFloat():
		return tensor.Of(numbers[float32](a), a.shape...)
	case a.dtype == tensor.Bool:
		return tensor.Of(converted(a, func(v float64) bool { return v != 0 }), a.shape...)
	}
	return tensor.Of(converted(a, func(v float64) int64 { return int64(v) }), a.shape...)
}

func converted[T any](a *Array, f func(v float64) T) []T {
	out := make([]T, 0, a.Len())
	for _, v := range a.floats64() {
		out = append(out, f(v))
	}
	return out
}

// DType returns the type of the elements.
func (a *Array) DType() tensor.DType { return a.dtype }

// Shape returns the size of each axis. The caller must not change it.
func (a *Array) Shape() []int { return a.shape }

// Len returns the number of elements.
func (a *Array) Len() int { return size(a.shape) }

// Floats returns a copy of the elements in row-major order.
func (a *Array) Floats() []float64 { return numbers[float64](a) }

func numbers[T floating](a *Array) []T {
	x := make([]T, a.Len())
	read(a, x, 0)
	return x
}

// floats64 returns the elements in row-major order, without a copy where they lie so.
func (a *Array) floats64() []float64 {
	if a.d != nil && a.isPacked() && a.Len() > 0 {
		return a.d[a.off:][:a.Len()]
	}
	return a.Floats()
}

// first returns the first element, which has to be there.
func (a *Array) first() float64 {
	if a.Len() == 0 {
		fail("an element of %v", a.shape)
	}
	var x [1]float64
	read(a, x[:], 0)
	return x[0]
}

func (a *Array) isFloat() bool { return a.dtype.IsFloat() }

// runs calls f for n elements, from one on in row-major order, as many at a time as lie one step apart:
// where they begin in the storage, their step, and how many they are.
func (a *Array) runs(from, n int, f func(at, step, count int)) {
	if a.complex {
		fail("complex numbers")
	}
	if n == 0 {
		return
	}
	var store [3][8]int
	sizes, steps, index := store[0][:0], store[1][:0], store[2][:0]
	for i, d := range a.shape { // axes that lie as one are one
		switch k := len(sizes) - 1; {
		case d == 1:
		case k >= 0 && steps[k] == a.strides[i]*d:
			sizes[k], steps[k] = sizes[k]*d, a.strides[i]
		default:
			sizes, steps, index = append(sizes, d), append(steps, a.strides[i]), append(index, 0)
		}
	}
	if len(sizes) == 0 {
		sizes, steps, index = append(sizes, 1), append(steps, 1), append(index, 0)
	}
	last, at := len(sizes)-1, a.off
	for i := last; i >= 0; i-- {
		index[i] = from % sizes[i]
		from /= sizes[i]
		at += index[i] * steps[i]
	}
	for n > 0 {
		count := min(sizes[last]-index[last], n)
		f(at, steps[last], count)
		n -= count
		index[last] += count
		at += count * steps[last]
		for i := last; i > 0 && index[i] == sizes[i]; i-- {
			at += steps[i-1] - sizes[i]*steps[i]
			index[i] = 0
			index[i-1]++
		}
	}
}

// read copies elements from one on, in row-major order.
func read[T floating](a *Array, dst []T, from int) {
	n := 0
	a.runs(from, len(dst), func(at, step, count int) {
		copyRun(a, dst[n:][:count], at, step)
		n += count
	})
}

// copyRun copies elements of the storage that are step apart.
func copyRun[T floating](a *Array, dst []T, at, step int) {
	switch {
	case a.f != nil:
		convert(dst, a.f, at, step)
	case a.d != nil:
		convert(dst, a.d, at, step)
	case a.half == tensor.F16:
		table := smallfloat.F16()
		for i := range dst {
			dst[i] = T(table[a.h[at+i*step]])
		}
	default:
		for i := range dst {
			dst[i] = T(math.Float32frombits(uint32(a.h[at+i*step]) << 16))
		}
	}
}

func convert[T, S floating](dst []T, src []S, at, step int) {
	if step == 1 {
		for i, v := range src[at:][:len(dst)] {
			dst[i] = T(v)
		}
		return
	}
	for i := range dst {
		dst[i] = T(src[at+i*step])
	}
}

// put writes the elements of an array of the same shape to those that a view shows.
func (a *Array) put(b *Array) {
	if !slices.Equal(a.shape, b.shape) {
		fail("%v into %v", b.shape, a.shape)
	}
	if a.complex && b.complex {
		a, b = a.real(), b.real()
	}
	n, buffer := 0, []float64(nil)
	a.runs(0, a.Len(), func(at, step, count int) {
		if a.f != nil && step == 1 {
			read(b, a.f[at:][:count], n)
			roundTo(a.f[at:][:count], a.dtype)
			n += count
			return
		}
		if buffer == nil {
			buffer = make([]float64, min(chunk, a.Len()))
		}
		for count > 0 {
			x := buffer[:min(len(buffer), count)]
			read(b, x, n)
			a.store(x, at, step)
			n, at, count = n+len(x), at+len(x)*step, count-len(x)
		}
	})
}

// write rounds numbers to the type of a packed array, from element at on.
func (a *Array) write(x []float64, at int) {
	if a.complex {
		fail("complex numbers")
	}
	a.store(x, a.off+at, 1)
}

// store rounds numbers to the type of elements that are step apart in the storage. Numbers become
// integers toward zero, and bools where they are not zero.
func (a *Array) store(x []float64, at, step int) {
	switch {
	case a.f != nil && step == 1:
		dst := a.f[at:][:len(x)]
		for i, v := range x {
			dst[i] = float32(v)
		}
		roundTo(dst, a.dtype)
	case a.f != nil:
		for i, v := range x {
			a.f[at+i*step] = float32(rounded(v, a.dtype))
		}
	case a.isFloat():
		for i, v := range x {
			a.d[at+i*step] = v
		}
	case a.dtype == tensor.Bool:
		for i, v := range x {
			a.d[at+i*step] = b2f(v != 0)
		}
	default:
		for i, v := range x {
			a.d[at+i*step] = integer(v, a.dtype)
		}
	}
}

// clear sets all of a storage to zero.
func (a *Array) clear() {
	clear(a.f)
	clear(a.d)
}

// filled sets all elements of a packed array of zeros.
func filled(a *Array, v float64) *Array {
	if n := a.Len(); n > 0 && v != 0 {
		a.write([]float64{v}, 0)
		for i := range a.f {
			a.f[i] = a.f[0]
		}
		for i := range a.d {
			a.d[i] = a.d[0]
		}
	}
	return a
}

// integer cuts a number to a type of integers. Of 64 bits, what is none or too large becomes −2⁶³, as
// on x86; shorter types keep the lowest bits of that.
func integer(v float64, t tensor.DType) float64 {
	if !(math.Abs(v) < 1<<63) {
		v = -1 << 63
	}
	v = math.Trunc(v)
	bits := 8 * t.Size()
	if half := float64(uint64(1) << (bits - 1)); bits == 64 || v >= -half && v < half && t.Signed() || v >= 0 && v < half {
		return v
	}
	i := uint64(int64(v)) << (64 - bits)
	if t.Signed() {
		return float64(int64(i) >> (64 - bits))
	}
	return float64(i >> (64 - bits))
}

// cast rounds to another type; wide floats stay as they are, but for those of 8 bits: nothing computes in
// them, so that rounding to them is meant.
func (a *Array) cast(dtype tensor.DType, wide bool) *Array {
	switch {
	case a.dtype == dtype:
		return a
	case a.complex:
		fail("complex numbers as %s", dtype)
	case wide && dtype.IsFloat() && dtype.Size() == 1:
		a = a.cast(dtype, false)
	case a.isFloat() && dtype.IsFloat() && (wide || dtype == tensor.F32 && a.d == nil):
		v := *a // its numbers are of that type, too
		v.dtype = dtype
		return &v
	}
	out := newArray(dtype, a.shape, wide)
	out.put(a)
	return out
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
