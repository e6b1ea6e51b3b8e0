package tensor

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/goparity/goparity/internal/smallfloat"
)

// Float64s decodes elements start, start+1, … into dst and returns how many it wrote: len(dst), or
// less at the end. NaN and infinities are kept. The values are exact, except that 64-bit integers
// are rounded to nearest: see [Tensor.Int64s]. Bools become 0 and 1 (any byte but 0 is true).
func (t *Tensor) Float64s(dst []float64, start int) int {
	if t.packed != nil {
		return t.unpackFloat64s(dst, start)
	}
	return t.elements(len(dst), start, func(at int, data []byte) { decode(dst[at:], data, t.dtype) })
}

// Int64s decodes integers and bools like [Tensor.Float64s], without rounding. Values of uint64 from
// 2^63 on wrap to negative ones. It panics for floats.
func (t *Tensor) Int64s(dst []int64, start int) int {
	if t.dtype.IsFloat() {
		panic("tensor: Int64s of " + t.dtype.String())
	}
	size := t.dtype.Size()
	return t.elements(len(dst), start, func(at int, data []byte) {
		for i := range len(data) / size {
			dst[at+i] = intAt(data[i*size:], t.dtype)
		}
	})
}

// Float32s decodes like [Tensor.Float64s]. It panics for types with values that are not exact in
// float32: float64, and integers of 32 bits and more.
func (t *Tensor) Float32s(dst []float32, start int) int {
	if t.dtype.Size() > 2 && t.dtype != F32 {
		panic("tensor: Float32s of " + t.dtype.String())
	}
	if t.packed != nil {
		return t.unpack(dst, start)
	}
	return t.elements(len(dst), start, func(at int, data []byte) { decode(dst[at:], data, t.dtype) })
}

// elements passes the bytes of at most n elements from start to use, as [Tensor.Gather] returns them, part by part: at
// is the number of elements before. What is stored in order is not copied.
func (t *Tensor) elements(n, start int, use func(at int, data []byte)) (done int) {
	n, size := min(n, t.Len()-start), t.dtype.Size()
	if start < 0 || n <= 0 {
		return 0
	}
	data := t.storage()
	if t.Contiguous() {
		use(0, data[t.base+start*size:][:n*size])
		return n
	}
	buf := make([]byte, min(n, unpackPart)*size)
	for done < n {
		k := t.gather(buf[:min(len(buf), (n-done)*size)], data, start+done)
		use(done, buf[:k*size])
		done += k
	}
	return n
}

// Gather copies the bytes of elements start, start+1, … to dst, each least significant byte first,
// and returns how many elements it copied: as many as fit into dst, or less at the end.
func (t *Tensor) Gather(dst []byte, start int) int {
	if t.packed != nil {
		return t.unpackBytes(dst, start)
	}
	return t.gather(dst, t.storage(), start)
}

// gather is Gather from the storage.
func (t *Tensor) gather(dst, data []byte, start int) int {
	size, done := t.dtype.Size(), 0
	if rank := len(t.shape); rank > 1 && t.strides[rank-1] > t.strides[rank-2] && start >= 0 && t.RowLen() > 0 &&
		start%t.RowLen() == 0 {
		done = t.gatherTurned(dst, data, start)
	}
	return done + walk(t, len(dst)/size-done, start+done, func(at, from, n, step int) {
		gatherRun(dst[(done+at)*size:(done+at+n)*size], data[from:], size, step*size)
	})
}

// gatherTurned copies whole rows of a matrix that is stored by columns. It goes tile by tile,
// because neighbours in a column share a cache line.
func (t *Tensor) gatherTurned(dst, data []byte, start int) (done int) {
	const together, tile = 64, 16
	size, rank, cols := t.dtype.Size(), len(t.shape), t.RowLen()
	total := min(len(dst)/size, t.Len()-start) / cols * cols
	for done < total {
		idx := t.Index(start + done)
		from := t.base
		for a, i := range idx {
			from += i * t.strides[a] * size
		}
		rows := min(together, (total-done)/cols, t.shape[rank-2]-idx[rank-2])
		right, down := t.strides[rank-1]*size, t.strides[rank-2]*size
		for j := 0; j < cols; j += tile {
			for r := range rows {
				gatherRun(dst[(done+r*cols+j)*size:][:min(tile, cols-j)*size], data[from+j*right+r*down:], size,
					right)
			}
		}
		done += rows * cols
	}
	return done
}

// At decodes element i. It panics if there is none.
func (t *Tensor) At(i int) float64 {
	var v [1]float64
	if i < 0 || t.Float64s(v[:], i) != 1 {
		panic(fmt.Sprintf("tensor: element %d of %s", i, t))
	}
	return v[0]
}

// Index returns the index per axis of element i.
func (t *Tensor) Index(i int) []int {
	idx := make([]int, len(t.shape))
	for a := len(t.shape) - 1; a >= 0; a-- {
		if t.shape[a] > 0 {
			idx[a] = i % t.shape[a]
			i /= t.shape[a]
		}
	}
	return idx
}

// walk visits the elements [start, start+n) as runs with a constant step: at is the position in the
// output, from the byte offset of the run's first element, and step the distance between
// neighbours, in elements.
func walk(t *Tensor, n, start int, run func(at, from, n, step int)) int {
	total := t.Len()
	if start < 0 || start >= total {
		return 0
	}
	n = min(n, total-start)
	if n == 0 {
		return 0
	}
	size := t.dtype.Size()
	if t.Contiguous() {
		run(0, t.base+start*size, n, 1)
		return n
	}
	last := len(t.shape) - 1 // not contiguous: there is an axis
	idx := t.Index(start)
	off := 0
	for a, i := range idx {
		off += i * t.strides[a]
	}
	for at := 0; at < n; {
		m := min(t.shape[last]-idx[last], n-at)
		run(at, t.base+off*size, m, t.strides[last])
		at += m
		// To the first element of the next row.
		off -= idx[last] * t.strides[last]
		idx[last] = 0
		for a := last - 1; a >= 0; a-- {
			idx[a]++
			off += t.strides[a]
			if idx[a] < t.shape[a] {
				break
			}
			off -= idx[a] * t.strides[a]
			idx[a] = 0
		}
	}
	return n
}

// decode reads elements that lie one after the other, least significant byte first.
func decode[T float32 | float64](dst []T, src []byte, d DType) {
	dst = dst[:len(src)/d.Size()]
	switch d {
	case F32:
		for i := range dst {
			dst[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case F64:
		for i := range dst {
			dst[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = T(math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16))
		}
	case F16:
		table := smallfloat.F16()
		for i := range dst {
			dst[i] = T(table[binary.LittleEndian.Uint16(src[2*i:])])
		}
	case F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU:
		table := f8Table(d)
		for i := range dst {
			dst[i] = T(table[src[i]])
		}
	case U64:
		for i := range dst {
			dst[i] = T(binary.LittleEndian.Uint64(src[8*i:]))
		}
	default:
		size := d.Size()
		for i := range dst {
			dst[i] = T(intAt(src[i*size:], d))
		}
	}
}

// gatherRun copies elements of size bytes that are step bytes apart.
func gatherRun(dst, src []byte, size, step int) {
	switch {
	case size == step:
		copy(dst, src)
	case size == 2:
		for i := range len(dst) / 2 {
			*(*[2]byte)(dst[2*i:]) = *(*[2]byte)(src[i*step:])
		}
	case size == 4:
		for i := range len(dst) / 4 {
			*(*[4]byte)(dst[4*i:]) = *(*[4]byte)(src[i*step:])
		}
	case size == 8:
		for i := range len(dst) / 8 {
			*(*[8]byte)(dst[8*i:]) = *(*[8]byte)(src[i*step:])
		}
	default:
		for i := range dst {
			dst[i] = src[i*step]
		}
	}
}

func intAt(b []byte, d DType) int64 {
	switch d {
	case Bool:
		if b[0] != 0 {
			return 1
		}
		return 0
	case I8:
		return int64(int8(b[0]))
	case U8:
		return int64(b[0])
	case I16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case U16:
		return int64(binary.LittleEndian.Uint16(b))
	case I32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case U32:
		return int64(binary.LittleEndian.Uint32(b))
	default: // I64, U64
		return int64(binary.LittleEndian.Uint64(b))
	}
}

func f8Table(d DType) *smallfloat.Table {
	t := smallfloat.F8()
	switch d {
	case F8E4M3FN:
		return &t.E4M3FN
	case F8E4M3FNUZ:
		return &t.E4M3FNUZ
	case F8E5M2:
		return &t.E5M2
	case F8E5M2FNUZ:
		return &t.E5M2FNUZ
	}
	return &t.E8M0FNU
}

// copied returns all elements, little-endian and in row-major order.
func (t *Tensor) copied() []byte {
	data := make([]byte, t.Len()*t.dtype.Size())
	t.Gather(data, 0)
	return data
}

// WriteTo writes all elements, little-endian and in row-major order, and returns the number of
// bytes.
func (t *Tensor) WriteTo(w io.Writer) (written int64, err error) {
	data, stored := t.Bytes()
	if !stored && !t.Contiguous() && t.packed != nil { // which unpacks all of it for any part
		data, stored = t.copied(), true
	}
	if stored {
		n, err := w.Write(data)
		return int64(n), err
	}
	buf := make([]byte, min(t.Len(), 1<<16)*t.dtype.Size())
	for from := 0; from < t.Len() && err == nil; {
		k := t.Gather(buf, from)
		n := 0
		n, err = w.Write(buf[:k*t.dtype.Size()])
		written += int64(n)
		from += k
	}
	return written, err
}

// Element is a Go type of a tensor's elements.
type Element interface {
	bool | int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// Of returns a tensor with a copy of Go values. The error is for a shape with another number of
// elements.
func Of[T Element](values []T, shape ...int) (*Tensor, error) {
	var zero T
	d := map[any]DType{false: Bool, int8(0): I8, uint8(0): U8, int16(0): I16, uint16(0): U16, int32(0): I32,
		uint32(0): U32,
		int64(0):  I64, uint64(0): U64, float32(0): F32, float64(0): F64}[any(zero)]
	n, err := NumElems(shape)
	if err != nil {
		return nil, fmt.Errorf("tensor: of: %w", err)
	}
	if n != len(values) {
		return nil, fmt.Errorf("tensor: of: shape %s wants %d values, got %d", FormatShape(shape), n, len(values))
	}
	data, err := binary.Append(make([]byte, 0, n*d.Size()), binary.LittleEndian, values)
	if err != nil {
		return nil, fmt.Errorf("tensor: of: %w", err)
	}
	return New(d, shape, data)
}
