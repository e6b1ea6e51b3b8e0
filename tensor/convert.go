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
	data := t.storage()
	return walk(t, len(dst), start, func(at, from, n, step int) {
		decodeFloat64(dst[at:at+n], data[from:], t.dtype, step*t.dtype.Size(), t.big)
	})
}

// Int64s decodes integers and bools like [Tensor.Float64s], without rounding. Values of uint64 from
// 2^63 on wrap to negative ones. It panics for floats.
func (t *Tensor) Int64s(dst []int64, start int) int {
	if t.dtype.IsFloat() {
		panic("tensor: Int64s of " + t.dtype.String())
	}
	data := t.storage()
	return walk(t, len(dst), start, func(at, from, n, step int) {
		decodeInt64(dst[at:at+n], data[from:], t.dtype, step*t.dtype.Size(), t.big)
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
	data := t.storage()
	return walk(t, len(dst), start, func(at, from, n, step int) {
		decodeFloat32(dst[at:at+n], data[from:], t.dtype, step*t.dtype.Size(), t.big)
	})
}

// Gather copies the bytes of elements start, start+1, … to dst, each least significant byte first,
// and returns how many elements it copied: as many as fit into dst, or less at the end.
func (t *Tensor) Gather(dst []byte, start int) int {
	if t.packed != nil {
		return t.unpackBytes(dst, start)
	}
	size, data := t.dtype.Size(), t.storage()
	done := 0
	if rank := len(t.shape); rank > 1 && t.strides[rank-1] > t.strides[rank-2] && start >= 0 && t.RowLen() > 0 &&
		start%t.RowLen() == 0 {
		done = t.gatherTurned(dst, data, start)
	}
	return done + walk(t, len(dst)/size-done, start+done, func(at, from, n, step int) {
		gather(dst[(done+at)*size:(done+at+n)*size], data[from:], size, step*size, t.big)
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
				gather(dst[(done+r*cols+j)*size:][:min(tile, cols-j)*size], data[from+j*right+r*down:], size,
					right, t.big)
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

// decodeFloat64 reads len(dst) elements that are step bytes apart. The first begins at src[0].
func decodeFloat64(dst []float64, src []byte, d DType, step int, big bool) {
	switch d {
	case F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(u32(src[i*step:], big)))
		}
	case F64:
		for i := range dst {
			dst[i] = math.Float64frombits(u64(src[i*step:], big))
		}
	case BF16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(u16(src[i*step:], big)) << 16))
		}
	case F16:
		table := smallfloat.F16()
		for i := range dst {
			dst[i] = float64(table[u16(src[i*step:], big)])
		}
	case F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU:
		table := f8Table(d)
		for i := range dst {
			dst[i] = float64(table[src[i*step]])
		}
	case U64:
		for i := range dst {
			dst[i] = float64(u64(src[i*step:], big))
		}
	default:
		for i := range dst {
			dst[i] = float64(intAt(src[i*step:], d, big))
		}
	}
}

func decodeFloat32(dst []float32, src []byte, d DType, step int, big bool) {
	switch d {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(u32(src[i*step:], big))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(u16(src[i*step:], big)) << 16)
		}
	case F16:
		table := smallfloat.F16()
		for i := range dst {
			dst[i] = table[u16(src[i*step:], big)]
		}
	case F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU:
		table := f8Table(d)
		if step == 1 {
			for i, b := range src[:len(dst)] {
				dst[i] = table[b]
			}
			return
		}
		for i := range dst {
			dst[i] = table[src[i*step]]
		}
	default:
		for i := range dst {
			dst[i] = float32(intAt(src[i*step:], d, big))
		}
	}
}

// gather copies elements of size bytes that are step bytes apart.
func gather(dst, src []byte, size, step int, big bool) {
	switch {
	case size == step && !big:
		copy(dst, src)
	case size == 2 && !big:
		for i := range len(dst) / 2 {
			*(*[2]byte)(dst[2*i:]) = *(*[2]byte)(src[i*step:])
		}
	case size == 4 && !big:
		for i := range len(dst) / 4 {
			*(*[4]byte)(dst[4*i:]) = *(*[4]byte)(src[i*step:])
		}
	case size == 8 && !big:
		for i := range len(dst) / 8 {
			*(*[8]byte)(dst[8*i:]) = *(*[8]byte)(src[i*step:])
		}
	case size == 2:
		for i := range len(dst) / 2 {
			binary.LittleEndian.PutUint16(dst[2*i:], binary.BigEndian.Uint16(src[i*step:]))
		}
	case size == 4:
		for i := range len(dst) / 4 {
			binary.LittleEndian.PutUint32(dst[4*i:], binary.BigEndian.Uint32(src[i*step:]))
		}
	case size == 8:
		for i := range len(dst) / 8 {
			binary.LittleEndian.PutUint64(dst[8*i:], binary.BigEndian.Uint64(src[i*step:]))
		}
	default:
		for i := range dst {
			dst[i] = src[i*step]
		}
	}
}

func decodeInt64(dst []int64, src []byte, d DType, step int, big bool) {
	for i := range dst {
		dst[i] = intAt(src[i*step:], d, big)
	}
}

func intAt(b []byte, d DType, big bool) int64 {
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
		return int64(int16(u16(b, big)))
	case U16:
		return int64(u16(b, big))
	case I32:
		return int64(int32(u32(b, big)))
	case U32:
		return int64(u32(b, big))
	default: // I64, U64
		return int64(u64(b, big))
	}
}

func u16(b []byte, big bool) uint16 {
	if big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func u32(b []byte, big bool) uint32 {
	if big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func u64(b []byte, big bool) uint64 {
	if big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
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

// appendBytes appends all elements, little-endian and in row-major order.
func (t *Tensor) appendBytes(dst []byte) []byte {
	if b, ok := t.Bytes(); ok {
		return append(dst, b...)
	}
	size := t.dtype.Size()
	if t.packed != nil {
		at := len(dst)
		dst = append(dst, make([]byte, t.Len()*size)...)
		t.unpackBytes(dst[at:], 0)
		return dst
	}
	data := t.storage()
	walk(t, t.Len(), 0, func(_, from, n, step int) {
		for i := range n {
			e := data[from+i*step*size:][:size]
			if !t.big {
				dst = append(dst, e...)
				continue
			}
			for j := size - 1; j >= 0; j-- {
				dst = append(dst, e[j])
			}
		}
	})
	return dst
}

// WriteTo writes all elements, little-endian and in row-major order, and returns the number of
// bytes.
func (t *Tensor) WriteTo(w io.Writer) (int64, error) {
	if b, ok := t.Bytes(); ok {
		n, err := w.Write(b)
		return int64(n), err
	}
	flat, err := t.Reshape(t.Len())
	if err != nil {
		return 0, err
	}
	if b, ok := flat.Bytes(); ok { // Reshape has copied
		n, err := w.Write(b)
		return int64(n), err
	}
	var written int64
	const block = 1 << 16
	for from := 0; from < t.Len(); from += block {
		part, err := flat.Slice(0, from, min(from+block, t.Len()))
		if err != nil {
			return written, err
		}
		n, err := w.Write(part.appendBytes(nil))
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
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
