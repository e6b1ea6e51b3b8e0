package tensor_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
)

func TestFromSpecBounds(t *testing.T) {
	of := func(d tensor.DType, shape, strides []int, bytes, offset int) tensor.Spec {
		return tensor.Spec{DType: d, Shape: shape, Strides: strides, Data: make([]byte, bytes), Offset: offset}
	}
	packed := func(d tensor.DType, strides []int, offset int, big bool) tensor.Spec {
		return tensor.Spec{DType: d, Shape: []int{2}, Strides: strides, Offset: offset, BigEndian: big,
			Packing: &tensor.Packing{Name: "zeros", Unpack: func(dst []float32, _ []byte, _ int) { clear(dst) }}}
	}
	const i8, i16, f16, f32, f64, huge = tensor.I8, tensor.I16, tensor.F16, tensor.F32, tensor.F64, math.MaxInt
	for _, r := range []struct {
		spec   tensor.Spec
		says   string // "": it is good
		reason string
	}{
		{of(f32, []int{2, 3}, nil, 24, 0), "", "strides may be left out"},
		{of(f64, nil, nil, 8, 0), "", "a scalar has no axis and one element"},
		{of(f32, []int{0, 3}, nil, 0, 0), "", "no elements need no bytes"},
		{of(f32, []int{3, 0}, []int{1 << 20, 1 << 20}, 0, 0), "", "nothing is read, whatever the strides"},
		{of(f32, []int{0}, nil, 8, 2), "", "t[2:] of two elements"},
		{of(i8, []int{huge, huge, 0}, nil, 0, 0), "", "a zero next to an overflow"},
		{of(i8, []int{1000}, []int{0}, 1, 0), "", "stride 0 repeats"},
		{of(i16, []int{2}, []int{3}, 10, 1), "", "elements 1 and 4 of 5"},
		{of(i16, []int{2}, []int{3}, 8, 1), "does not fit", "one after the end"},
		{of(f32, []int{2}, nil, 7, 0), "does not fit", "part of an element"},
		{of(f32, []int{0}, nil, 8, 3), "storage offset 3", "an offset after the end"},
		{of(f32, []int{1}, nil, 8, -1), "storage offset -1", "a negative offset"},
		{of(f32, []int{-1}, nil, 8, 0), "negative size", "a negative size"},
		{of(f32, []int{2}, []int{-1}, 8, 1), "negative stride", "a negative stride"},
		{of(f32, []int{2}, []int{1, 1}, 8, 0), "2 strides for 1 axes", "strides of another rank"},
		{of(tensor.Invalid, []int{1}, nil, 8, 0), "invalid dtype", "no dtype"},
		{of(99, []int{1}, nil, 8, 0), "invalid dtype", "a dtype beyond the table"},
		{of(i8, make([]int, 65), nil, 0, 0), "65 axes", "too many"},
		{of(i8, []int{huge, 2}, []int{0, 0}, 1, 0), "more elements", "the product overflows"},
		{of(f64, []int{huge / 2}, []int{0}, 8, 0), "more bytes", "the bytes overflow"},
		{of(i8, []int{3, 3}, []int{huge / 2, huge / 2}, 8, 0), "does not fit", "the offset overflows"},
		{packed(f16, nil, 0, false), "", "its elements are calculated"},
		{packed(i16, nil, 0, false), "floats of 16 or 32 bits", "packed integers"},
		{packed(f64, nil, 0, false), "floats of 16 or 32 bits", "packed doubles"},
		{packed(tensor.F8E5M2, nil, 0, false), "floats of 16 or 32 bits", "packed bytes"},
		{packed(f32, []int{1}, 0, false), "no strides", "packed, with strides"},
		{packed(f32, nil, 1, false), "no strides", "packed, with an offset"},
		{packed(f32, nil, 0, true), "no strides", "packed, with a byte order"},
	} {
		x, err := tensor.FromSpec(r.spec)
		if r.says != "" {
			require.ErrorContains(t, err, r.says, r.reason)
			require.Nil(t, x, r.reason)
			continue
		}
		require.NoError(t, err, r.reason)
		n, err := tensor.NumElems(r.spec.Shape)
		require.NoError(t, err, r.reason)
		require.Equal(t, n, x.Len(), r.reason)
		assert.Equal(t, n, x.Float64s(make([]float64, n), 0), "%s: every element can be read", r.reason)
	}
}

func TestSpecIsNotShared(t *testing.T) {
	ok := checked(t)
	shape, strides := []int{2, 2}, []int{2, 1}
	x := ok(tensor.FromSpec(tensor.Spec{DType: tensor.I8, Shape: shape, Strides: strides, Data: []byte{1, 2, 3, 4}}))
	shape[0], strides[0] = 1000, 1000
	assert.Equal(t, []int{2, 2}, x.Shape())
	assert.Equal(t, []int{2, 1}, x.Strides())
}

func TestNew(t *testing.T) {
	ok := checked(t)
	_, err := tensor.New(tensor.F32, []int{2}, make([]byte, 9))
	require.ErrorContains(t, err, "needs 8 bytes, got 9")
	_, err = tensor.New(tensor.F32, []int{-2}, nil)
	require.Error(t, err)
	x := ok(tensor.New(tensor.F32, []int{2, 1}, make([]byte, 8)))
	assert.Equal(t, "float32[2 1]", x.String())
	assert.Equal(t, 1, x.RowLen())
	scalar := ok(tensor.New(tensor.F32, nil, make([]byte, 4)))
	assert.Equal(t, "float32[]", scalar.String())
	assert.Equal(t, 1, scalar.RowLen())
}

func TestOf(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3))
	assert.Equal(t, 6.0, x.At(5))
	b := ok(tensor.Of([]bool{true, false}, 2))
	assert.Equal(t, tensor.Bool, b.DType())
	assert.Equal(t, []float64{1, 0}, floats(b))
	_, err := tensor.Of([]int32{1, 2}, 3)
	require.ErrorContains(t, err, "wants 3 values, got 2")
	_, err = tensor.Of([]int32{1, 2}, -2)
	require.Error(t, err)
}

// floats decodes all elements.
func floats(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	return out[:x.Float64s(out, 0)]
}

// fill returns a tensor of n elements of several values, in either byte order.
func fill(t *testing.T, d tensor.DType, n int, big bool) *tensor.Tensor {
	t.Helper()
	data := make([]byte, 0, n*d.Size())
	for i := range n {
		word := binary.LittleEndian.AppendUint64(nil, uint64(i%100)<<8|1)[:d.Size()]
		if d.Size() == 1 {
			word[0] = byte(i % 100)
		}
		if big {
			slices.Reverse(word)
		}
		data = append(data, word...)
	}
	return checked(t)(tensor.FromSpec(tensor.Spec{DType: d, Shape: []int{n}, Data: data, BigEndian: big}))
}

// Views of elements of all types, in both byte orders, are read and written as these are. What small codes stand for is
// compared with torch, and what wide ones do with Go.
func TestEveryDType(t *testing.T) {
	for _, d := range allDTypes {
		ok := checked(t)
		x := fill(t, d, 60, true)
		want := floats(fill(t, d, 60, false))
		require.Equal(t, want, floats(x), d)

		view := ok(ok(x.Reshape(3, 4, 5)).Transpose(2, 0, 1))
		var wantView []float64
		for k := range 5 {
			for row := range slices.Chunk(want, 5) {
				wantView = append(wantView, row[k])
			}
		}
		require.Equal(t, wantView, floats(view), d)
		for start := range 61 {
			buf := make([]float64, 7)
			n := view.Float64s(buf, start)
			require.Equal(t, wantView[start:min(start+7, 60)], buf[:n], "%s, a part from %d", d, start)
		}
		if ints := make([]int64, 60); d.IsFloat() {
			require.Panics(t, func() { x.Int64s(ints, 0) })
		} else {
			require.Equal(t, 60, view.Int64s(ints, 0))
			for i, v := range ints {
				require.Equal(t, int64(wantView[i]), v, d)
			}
		}

		var b bytes.Buffer
		n, err := view.WriteTo(&b)
		require.NoError(t, err)
		require.EqualValues(t, 60*d.Size(), n)
		back := ok(tensor.New(d, view.Shape(), b.Bytes()))
		require.Equal(t, wantView, floats(back), "%s: written little-endian, in row-major order", d)
		raw, lies := view.Copy().Bytes()
		require.True(t, lies)
		require.Equal(t, b.Bytes(), raw, d)
	}
}

func TestWideNumbersAreExact(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of([]int64{math.MinInt64, math.MaxInt64, 1<<53 + 1, -1}, 4))
	ints := make([]int64, 4)
	x.Int64s(ints, 0)
	assert.Equal(t, []int64{math.MinInt64, math.MaxInt64, 1<<53 + 1, -1}, ints)
	assert.Equal(t, []float64{-(1 << 63), 1 << 63, 1 << 53, -1}, floats(x), "as float64: rounded to nearest")

	u := ok(tensor.Of([]uint64{math.MaxUint64, 1 << 63, 5}, 3))
	assert.Equal(t, []float64{1 << 64, 1 << 63, 5}, floats(u))
	ints = ints[:3]
	u.Int64s(ints, 0)
	assert.Equal(t, []int64{-1, math.MinInt64, 5}, ints, "wraps, as documented")

	b := ok(tensor.New(tensor.Bool, []int{3}, []byte{0, 1, 7}))
	assert.Equal(t, []float64{0, 1, 1}, floats(b), "any byte but 0 is true")

	assert.Equal(t, []float64{-128, 127}, floats(ok(tensor.Of([]int8{-128, 127}, 2))))
	assert.Equal(t, []float64{0, 255}, floats(ok(tensor.Of([]uint8{0, 255}, 2))))
	assert.Equal(t, []float64{-32768, 32767}, floats(ok(tensor.Of([]int16{-32768, 32767}, 2))))
	assert.Equal(t, []float64{0, 65535}, floats(ok(tensor.Of([]uint16{0, 65535}, 2))))
	assert.Equal(t, []float64{math.MinInt32, math.MaxInt32}, floats(ok(tensor.Of([]int32{math.MinInt32, math.MaxInt32}, 2))))
	assert.Equal(t, []float64{0, math.MaxUint32}, floats(ok(tensor.Of([]uint32{0, math.MaxUint32}, 2))))
	assert.Equal(t, []float64{0.1, math.MaxFloat64}, floats(ok(tensor.Of([]float64{0.1, math.MaxFloat64}, 2))))
	assert.Equal(t, []float64{0.25, math.MaxFloat32}, floats(ok(tensor.Of([]float32{0.25, math.MaxFloat32}, 2))))
}

// checked returns what passes on a tensor that was made without an error.
func checked(t *testing.T) func(x *tensor.Tensor, err error) *tensor.Tensor {
	return func(x *tensor.Tensor, err error) *tensor.Tensor {
		t.Helper()
		require.NoError(t, err)
		return x
	}
}

func TestReadingOutside(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of([]float32{1, 2, 3}, 3))
	buf := make([]float64, 2)
	assert.Equal(t, 1, x.Float64s(buf, 2))
	assert.Equal(t, 0, x.Float64s(buf, 3))
	assert.Equal(t, 0, x.Float64s(buf, -1))
	assert.Equal(t, 0, x.Float64s(nil, 0))
	assert.Panics(t, func() { x.At(3) })
	assert.Panics(t, func() { x.At(-1) })
	assert.Equal(t, 3.0, x.At(2))
}

func TestWriteToInBlocks(t *testing.T) {
	ok := checked(t)
	x := fill(t, tensor.I32, 700*300, true) // more elements than a block
	turned := ok(ok(x.Reshape(700, 300)).Transpose())
	var b bytes.Buffer
	n, err := turned.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, 4*x.Len(), n)
	back := ok(ok(tensor.New(tensor.I32, turned.Shape(), b.Bytes())).Transpose())
	require.Equal(t, floats(x), floats(back))
}

// Gather returns the same bytes as a copy, from any element on, and Float32s its values.
func TestGather(t *testing.T) {
	ok := checked(t)
	for _, d := range []tensor.DType{tensor.U8, tensor.F8E5M2, tensor.BF16, tensor.F32, tensor.F64} {
		data := make([]byte, 3*70*45*d.Size())
		for i := range data {
			data[i] = byte(i * 7 % 251)
		}
		x := ok(tensor.FromSpec(tensor.Spec{DType: d, Shape: []int{3, 70, 45}, Data: data}))
		for _, row := range []struct {
			order  []int
			reason string
		}{{[]int{0, 1, 2}, "as stored"}, {[]int{0, 2, 1}, "matrices of columns"},
			{[]int{2, 1, 0}, "all axes turned"}, {[]int{1, 0, 2}, "rows in another order"}} {
			v := ok(x.Transpose(row.order...))
			want, ok := v.Copy().Bytes()
			require.True(t, ok)
			for _, start := range []int{0, 1, v.RowLen(), 10 * v.RowLen(), 5*v.RowLen() + 3, v.Len() - 1, v.Len()} {
				for _, n := range []int{1, 9 * v.RowLen(), 20*v.RowLen() + 5, v.Len()} {
					got := make([]byte, n*d.Size())
					m := v.Gather(got, start)
					assert.Equal(t, min(n, v.Len()-start), m, row.reason)
					assert.Equal(t, want[start*d.Size():(start+m)*d.Size()], got[:m*d.Size()], row.reason)
				}
			}
			if d == tensor.F64 {
				assert.Panics(t, func() { v.Float32s(make([]float32, 1), 0) })
				continue
			}
			floats, doubles := make([]float32, v.Len()), make([]float64, v.Len())
			assert.Equal(t, v.Len(), v.Float32s(floats, 0))
			v.Float64s(doubles, 0)
			for i, f := range floats {
				if f == f {
					require.Equal(t, doubles[i], float64(f), row.reason)
				}
			}
		}
	}
}
