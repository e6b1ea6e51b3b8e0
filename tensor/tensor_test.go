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
	packing := tensor.Packing{Name: "zeros", Unpack: func(dst []float32, _ []byte, _ int) { clear(dst) }}
	rows := []struct {
		name   string
		spec   tensor.Spec
		says   string // "": it is good
		reason string
	}{
		{"row-major", tensor.Spec{DType: tensor.F32, Shape: []int{2, 3}, Data: make([]byte, 24)}, "",
			"strides may be left out"},
		{"scalar", tensor.Spec{DType: tensor.F64, Data: make([]byte, 8)}, "", "no axis, one element"},
		{"no elements", tensor.Spec{DType: tensor.F32, Shape: []int{0, 3}}, "", "needs no bytes"},
		{"no elements, far strides", tensor.Spec{DType: tensor.F32, Shape: []int{3, 0},
			Strides: []int{1 << 20, 1 << 20}}, "", "nothing is read"},
		{"no elements at the end", tensor.Spec{DType: tensor.F32, Shape: []int{0}, Data: make([]byte, 8), Offset: 2},
			"", "t[2:] of two elements"},
		{"repeated", tensor.Spec{DType: tensor.I8, Shape: []int{1000}, Strides: []int{0}, Data: make([]byte, 1)}, "",
			"stride 0"},
		{"last byte", tensor.Spec{DType: tensor.I16, Shape: []int{2}, Strides: []int{3}, Data: make([]byte, 10),
			Offset: 1}, "", "elements 1 and 4 of 5"},
		{"part of an element", tensor.Spec{DType: tensor.F32, Shape: []int{2}, Data: make([]byte, 7)}, "does not fit",
			""},
		{"one after the end", tensor.Spec{DType: tensor.I16, Shape: []int{2}, Strides: []int{3}, Data: make([]byte, 8),
			Offset: 1}, "does not fit", ""},
		{"offset after the end", tensor.Spec{DType: tensor.F32, Shape: []int{0}, Data: make([]byte, 8), Offset: 3},
			"storage offset 3", ""},
		{"negative offset", tensor.Spec{DType: tensor.F32, Shape: []int{1}, Data: make([]byte, 8), Offset: -1},
			"storage offset -1", ""},
		{"negative size", tensor.Spec{DType: tensor.F32, Shape: []int{-1}, Data: make([]byte, 8)}, "negative size", ""},
		{"negative stride", tensor.Spec{DType: tensor.F32, Shape: []int{2}, Strides: []int{-1}, Data: make([]byte, 8),
			Offset: 1}, "negative stride", ""},
		{"strides of another rank", tensor.Spec{DType: tensor.F32, Shape: []int{2}, Strides: []int{1, 1},
			Data: make([]byte, 8)}, "2 strides for 1 axes", ""},
		{"no dtype", tensor.Spec{Shape: []int{1}, Data: make([]byte, 8)}, "invalid dtype", ""},
		{"dtype beyond the table", tensor.Spec{DType: 99, Shape: []int{1}, Data: make([]byte, 8)}, "invalid dtype", ""},
		{"65 axes", tensor.Spec{DType: tensor.I8, Shape: make([]int, 65)}, "65 axes", ""},
		{"product overflows", tensor.Spec{DType: tensor.I8, Shape: []int{math.MaxInt, 2}, Strides: []int{0, 0},
			Data: make([]byte, 1)}, "more elements", ""},
		{"bytes overflow", tensor.Spec{DType: tensor.F64, Shape: []int{math.MaxInt / 2}, Strides: []int{0},
			Data: make([]byte, 8)}, "more bytes", ""},
		{"offset overflows", tensor.Spec{DType: tensor.I8, Shape: []int{3, 3},
			Strides: []int{math.MaxInt / 2, math.MaxInt / 2}, Data: make([]byte, 8)}, "does not fit", ""},
		{"packed", tensor.Spec{DType: tensor.F16, Shape: []int{2}, Packing: &packing}, "", "its elements are calculated"},
		{"packed integers", tensor.Spec{DType: tensor.I16, Shape: []int{2}, Packing: &packing}, "floats of 16 or 32 bits", ""},
		{"packed doubles", tensor.Spec{DType: tensor.F64, Shape: []int{2}, Packing: &packing}, "floats of 16 or 32 bits", ""},
		{"packed bytes", tensor.Spec{DType: tensor.F8E5M2, Shape: []int{2}, Packing: &packing}, "floats of 16 or 32 bits", ""},
		{"packed, strides", tensor.Spec{DType: tensor.F32, Shape: []int{2}, Packing: &packing, Strides: []int{1}}, "no strides", ""},
		{"packed, offset", tensor.Spec{DType: tensor.F32, Shape: []int{2}, Packing: &packing, Offset: 1}, "no strides", ""},
		{"packed, big-endian", tensor.Spec{DType: tensor.F32, Shape: []int{2}, Packing: &packing, BigEndian: true}, "no strides", ""},
		{"zero next to an overflow", tensor.Spec{DType: tensor.I8, Shape: []int{math.MaxInt, math.MaxInt, 0}}, "",
			"no elements"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			x, err := tensor.FromSpec(r.spec)
			if r.says != "" {
				require.ErrorContains(t, err, r.says, r.reason)
				require.Nil(t, x)
				return
			}
			require.NoError(t, err, r.reason)
			n, err := tensor.NumElems(r.spec.Shape)
			require.NoError(t, err)
			require.Equal(t, n, x.Len())
			buf := make([]float64, n)
			assert.Equal(t, n, x.Float64s(buf, 0), "every element can be read")
		})
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

// fill returns a tensor of n elements, which are different small positive numbers.
func fill(t *testing.T, d tensor.DType, n int, big bool) (x *tensor.Tensor, want []float64) {
	ok := checked(t)
	t.Helper()
	data := make([]byte, 0, n*d.Size())
	for i := range n {
		code := uint64(i % 100)
		switch d {
		case tensor.Bool:
			code %= 2
		case tensor.F16:
			code = 0x3c00 + code // 1 + i/1024
		case tensor.BF16:
			code = 0x3f80 + code
		case tensor.F32:
			code = uint64(math.Float32bits(float32(code) + 0.25))
		case tensor.F64:
			code = math.Float64bits(float64(code) + 0.1)
		case tensor.I16, tensor.U16:
			code = code<<8 | 1
		case tensor.I32, tensor.U32, tensor.I64, tensor.U64:
			code = code<<20 | 1
		}
		word := binary.LittleEndian.AppendUint64(nil, code)[:d.Size()]
		if big {
			slices.Reverse(word)
		}
		data = append(data, word...)
		want = append(want, decode(d, code))
	}
	x = ok(tensor.FromSpec(tensor.Spec{DType: d, Shape: []int{n}, Data: data, BigEndian: big}))
	return x, want
}

// decode is a second, slow implementation of decoding, for the codes of fill.
func decode(d tensor.DType, code uint64) float64 {
	float := func(mantissa, bias int) float64 {
		e, m := int(code)>>mantissa, float64(int(code)&(1<<mantissa-1))
		if e == 0 {
			return m * math.Pow(2, float64(1-bias-mantissa))
		}
		return (1 + m*math.Pow(2, float64(-mantissa))) * math.Pow(2, float64(e-bias))
	}
	switch d {
	case tensor.F8E4M3FN:
		return float(3, 7)
	case tensor.F8E4M3FNUZ:
		return float(3, 8)
	case tensor.F8E5M2:
		return float(2, 15)
	case tensor.F8E5M2FNUZ:
		return float(2, 16)
	case tensor.F8E8M0FNU:
		return math.Pow(2, float64(code)-127)
	case tensor.F16:
		return float(10, 15)
	case tensor.BF16:
		return float(7, 127)
	case tensor.F32:
		return float64(math.Float32frombits(uint32(code)))
	case tensor.F64:
		return math.Float64frombits(code)
	}
	return float64(code)
}

func TestDecodeEveryDType(t *testing.T) {
	for _, d := range allDTypes {
		for _, big := range []bool{false, true} {
			name := d.String() + " little"
			if big {
				name = d.String() + " big"
			}
			t.Run(name, func(t *testing.T) {
				ok := checked(t)
				x, want := fill(t, d, 60, big)
				require.Equal(t, want, floats(x))

				cube := ok(x.Reshape(3, 4, 5))
				view := ok(cube.Transpose(2, 0, 1))
				var wantView []float64
				for k := range 5 {
					for i := range 3 {
						for j := range 4 {
							wantView = append(wantView, want[i*20+j*5+k])
						}
					}
				}
				require.Equal(t, wantView, floats(view))
				for start := range 61 {
					buf := make([]float64, 7)
					n := view.Float64s(buf, start)
					require.Equal(t, wantView[start:min(start+7, 60)], buf[:n], "a part from %d", start)
				}
				if !d.IsFloat() {
					ints := make([]int64, 60)
					require.Equal(t, 60, view.Int64s(ints, 0))
					for i, v := range ints {
						require.Equal(t, int64(wantView[i]), v)
					}
				} else {
					require.Panics(t, func() { x.Int64s(make([]int64, 1), 0) })
				}

				var b bytes.Buffer
				n, err := view.WriteTo(&b)
				require.NoError(t, err)
				require.EqualValues(t, 60*d.Size(), n)
				back := ok(tensor.New(d, view.Shape(), b.Bytes()))
				require.Equal(t, wantView, floats(back), "written little-endian, in row-major order")
				require.Equal(t, wantView, floats(view.Copy()))
				raw, lies := view.Copy().Bytes()
				require.True(t, lies)
				require.Equal(t, b.Bytes(), raw)
			})
		}
	}
}

func TestIntegersAreExact(t *testing.T) {
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

	assert.Equal(t, []float64{-128, 127}, floats(of(t, []int8{-128, 127})))
	assert.Equal(t, []float64{-32768, 32767}, floats(of(t, []int16{-32768, 32767})))
	assert.Equal(t, []float64{0, 65535}, floats(of(t, []uint16{0, 65535})))
	assert.Equal(t, []float64{math.MinInt32, math.MaxInt32}, floats(of(t, []int32{math.MinInt32, math.MaxInt32})))
	assert.Equal(t, []float64{0, math.MaxUint32}, floats(of(t, []uint32{0, math.MaxUint32})))
}

// checked returns what passes on a tensor that was made without an error.
func checked(t *testing.T) func(x *tensor.Tensor, err error) *tensor.Tensor {
	return func(x *tensor.Tensor, err error) *tensor.Tensor {
		t.Helper()
		require.NoError(t, err)
		return x
	}
}

func of[T int8 | int16 | uint16 | int32 | uint32](t *testing.T, values []T) *tensor.Tensor {
	t.Helper()
	return checked(t)(tensor.Of(values, len(values)))
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
	x, want := fill(t, tensor.I32, 700*300, true) // more elements than a block
	x = ok(x.Reshape(700, 300))
	turned := ok(x.Transpose())
	var b bytes.Buffer
	n, err := turned.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, 4*len(want), n)
	back := ok(tensor.New(tensor.I32, turned.Shape(), b.Bytes()))
	back = ok(back.Transpose())
	require.Equal(t, want, floats(back))
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
