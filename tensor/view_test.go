package tensor_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
)

// model is a tensor as a plain list of values. Each operation on views must agree with it.
type model struct {
	shape  []int
	values []float64
}

// gather builds the model of a new shape. For each new index, pick returns the old index.
func (m model) gather(shape []int, pick func(idx []int) []int) model {
	out := model{shape: shape}
	n := 1
	for _, d := range shape {
		n *= d
	}
	idx := make([]int, len(shape))
	for i := range n {
		rest := i
		for a := len(shape) - 1; a >= 0; a-- {
			idx[a] = rest % shape[a]
			rest /= shape[a]
		}
		at := 0
		for a, j := range pick(idx) {
			at = at*m.shape[a] + j
		}
		out.values = append(out.values, m.values[at])
	}
	return out
}

func TestRandomViews(t *testing.T) {
	ok := checked(t)
	r := rand.New(rand.NewPCG(3, 5))
	for range 3000 {
		shape := make([]int, r.IntN(5))
		n := 1
		for a := range shape {
			shape[a] = 1 + r.IntN(4)
			if r.IntN(20) == 0 {
				shape[a] = 0
			}
			n *= shape[a]
		}
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i + 1)
		}
		x := ok(tensor.Of(values, shape...))
		if r.IntN(3) == 0 {
			x = ok(tensor.FromSpec(tensor.Spec{DType: []tensor.DType{tensor.F32, tensor.BF16}[r.IntN(2)], Shape: shape,
				Packing: &tensor.Packing{Name: "counted", Unpack: func(dst []float32, _ []byte, from int) {
					for i := range dst {
						dst[i] = float32(from + i + 1)
					}
				}}}))
		}
		m := model{shape, values}
		said := x.String()
		for range r.IntN(6) {
			var what string
			x, m, what = randomStep(t, r, x, m)
			said += what
			require.Equal(t, m.shape, x.Shape(), said)
			require.Len(t, m.values, x.Len(), said)
			got := floats(x)
			for i, v := range m.values {
				require.Equal(t, v, got[i], "%s, element %d", said, i)
			}
			if x.Contiguous() && x.Packing() == "" {
				raw, ok := x.Bytes()
				require.True(t, ok, said)
				require.Len(t, raw, x.DType().Size()*x.Len(), said)
			}
			gathered := make([]byte, x.DType().Size()*x.Len())
			require.Equal(t, x.Len(), x.Gather(gathered, 0), said)
			copied, _ := x.Copy().Bytes()
			require.True(t, bytes.Equal(copied, gathered), said)
			if x.Len() > 0 {
				i := r.IntN(x.Len())
				at := 0
				for a, j := range x.Index(i) {
					at = at*x.Shape()[a] + j
				}
				require.Equal(t, i, at, said)
				require.Equal(t, m.values[i], x.At(i), said)
			}
		}
	}
}

// randomStep applies one operation to a tensor and to its model.
func randomStep(t *testing.T, r *rand.Rand, x *tensor.Tensor, m model) (*tensor.Tensor, model, string) {
	ok := checked(t)
	t.Helper()
	rank := len(m.shape)
	switch r.IntN(5) {
	case 0:
		if rank == 0 {
			break
		}
		axis := r.IntN(rank)
		from := r.IntN(m.shape[axis] + 1)
		to := from + r.IntN(m.shape[axis]-from+1)
		y := ok(x.Slice(axis, from, to))
		shape := append([]int{}, m.shape...)
		shape[axis] = to - from
		return y, m.gather(shape, func(idx []int) []int {
			old := append([]int{}, idx...)
			old[axis] += from
			return old
		}), " slice"
	case 1:
		if rank == 0 {
			break
		}
		order := r.Perm(rank)
		y := ok(x.Transpose(order...))
		shape := make([]int, rank)
		for i, a := range order {
			shape[i] = m.shape[a]
		}
		return y, m.gather(shape, func(idx []int) []int {
			old := make([]int, rank)
			for i, a := range order {
				old[a] = idx[i]
			}
			return old
		}), " transpose"
	case 2:
		// The same elements in another shape: its prime factors in another order and grouping.
		shape := make([]int, 1+r.IntN(4))
		for a := range shape {
			shape[a] = 1
		}
		n := len(m.values)
		if n == 0 {
			shape[0] = 0
		}
		for f := 2; n > 1; {
			if n%f != 0 {
				f++
				continue
			}
			shape[r.IntN(len(shape))] *= f
			n /= f
		}
		y := ok(x.Reshape(shape...))
		return y, model{shape, m.values}, " reshape"
	case 3:
		if len(m.values) > 2000 {
			break
		}
		shape := append([]int{}, m.shape...)
		for a := range shape {
			if shape[a] == 1 {
				shape[a] = 1 + r.IntN(3)
			}
		}
		lead := r.IntN(2)
		if lead == 1 {
			shape = append([]int{1 + r.IntN(2)}, shape...)
		}
		y := ok(x.Broadcast(shape...))
		return y, m.gather(shape, func(idx []int) []int {
			old := append([]int{}, idx[lead:]...)
			for a := range old {
				if m.shape[a] == 1 {
					old[a] = 0
				}
			}
			return old
		}), " broadcast"
	}
	return x.Copy(), m, " copy"
}

func TestReshapeKeepsViews(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of(make([]float32, 24), 2, 3, 4))
	transposed := ok(x.Transpose(2, 0, 1))
	rows := []struct {
		from   *tensor.Tensor
		shape  []int
		want   []int // strides
		reason string
	}{
		{x, []int{6, 4}, []int{4, 1}, "neighbours join"},
		{x, []int{2, 3, 2, 2}, []int{12, 4, 2, 1}, "an axis is cut"},
		{x, []int{4, 6}, []int{6, 1}, "all is one run"},
		{transposed, []int{4, 6}, []int{1, 4}, "the two outer axes are adjacent"},
		{transposed, []int{2, 2, 2, 3}, []int{2, 1, 12, 4}, "cut, strided"},
	}
	for _, r := range rows {
		y := ok(r.from.Reshape(r.shape...))
		assert.Equal(t, r.want, y.Strides(), r.reason)
	}
	copied := ok(transposed.Reshape(24))
	assert.Equal(t, []int{1}, copied.Strides(), "no strides have this order: it is a copy")
}

func TestViewsRefuse(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of(make([]float32, 6), 2, 3))
	vector := ok(tensor.Of(make([]float32, 6), 6))
	other := ok(tensor.Of(make([]int32, 6), 2, 3))
	rows := []struct {
		name string
		do   func() (*tensor.Tensor, error)
		says string
	}{
		{"slice of an axis that is not there", func() (*tensor.Tensor, error) { return x.Slice(2, 0, 1) }, "axis 2"},
		{"slice beyond the end", func() (*tensor.Tensor, error) { return x.Slice(1, 0, 4) }, "has size 3"},
		{"slice from a negative index", func() (*tensor.Tensor, error) { return x.Slice(1, -1, 1) }, "[-1:1]"},
		{"transpose of one axis", func() (*tensor.Tensor, error) { return vector.Transpose() }, "fewer than two axes"},
		{"an axis twice", func() (*tensor.Tensor, error) { return x.Transpose(0, 0) }, "not an order"},
		{"too few axes", func() (*tensor.Tensor, error) { return x.Transpose(0) }, "not an order"},
		{"reshape to more", func() (*tensor.Tensor, error) { return x.Reshape(7) }, "has 6 elements"},
		{"reshape to a guess", func() (*tensor.Tensor, error) { return x.Reshape(2, -1) }, "negative size"},
		{"broadcast of a size", func() (*tensor.Tensor, error) { return x.Broadcast(2, 6) }, "does not repeat"},
		{"concat of nothing", func() (*tensor.Tensor, error) { return tensor.Concat(0) }, "no tensors"},
		{"concat of dtypes", func() (*tensor.Tensor, error) { return tensor.Concat(0, x, other) }, "does not fit"},
		{"concat along a missing axis", func() (*tensor.Tensor, error) { return tensor.Concat(2, x, x) }, "axis 2"},
		{"select by too few flags", func() (*tensor.Tensor, error) { return x.SelectRows([]bool{true}) }, "1 flags"},
	}
	for _, r := range rows {
		y, err := r.do()
		require.ErrorContains(t, err, r.says, r.name)
		require.Nil(t, y, r.name)
	}
}

func TestConcat(t *testing.T) {
	ok := checked(t)
	a := ok(tensor.Of([]float32{1, 2, 3, 4}, 2, 2))
	b := ok(tensor.Of([]float32{5, 6}, 2, 1))
	columns := ok(tensor.Concat(1, a, b))
	assert.Equal(t, []int{2, 3}, columns.Shape())
	assert.Equal(t, []float64{1, 2, 5, 3, 4, 6}, floats(columns))

	flipped := ok(a.Transpose())
	rows := ok(tensor.Concat(0, flipped, a))
	assert.Equal(t, []float64{1, 3, 2, 4, 1, 2, 3, 4}, floats(rows))

	empty := ok(tensor.Of([]float32{}, 0, 2))
	same := ok(tensor.Concat(0, empty, a))
	assert.Equal(t, floats(a), floats(same))
	nothing := ok(tensor.Concat(1, empty, empty))
	assert.Equal(t, []int{0, 4}, nothing.Shape())
}

func TestSelectRows(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2))
	y := ok(x.SelectRows([]bool{false, true, true, false}))
	assert.Equal(t, []int{2, 2}, y.Shape())
	assert.Equal(t, []float64{3, 4, 5, 6}, floats(y))
	none := ok(x.SelectRows(make([]bool, 4)))
	assert.Equal(t, []int{0, 2}, none.Shape())

	// There is a flag for each row, even if rows have no elements.
	empty := ok(tensor.Of([]float32{}, 3, 0))
	kept := ok(empty.SelectRows([]bool{true, false, true}))
	assert.Equal(t, []int{2, 0}, kept.Shape())
	_, err := empty.SelectRows([]bool{true})
	require.ErrorContains(t, err, "1 flags", "three rows")
	scalar := ok(tensor.Of([]float32{1}))
	_, err = scalar.SelectRows([]bool{true})
	require.Error(t, err, "a scalar has no rows")
}

// TestDeferred reads a tensor and views of it through a function that returns other memory each time.
func TestDeferred(t *testing.T) {
	ok := checked(t)
	x := ok(tensor.Of([]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, 4))
	turned := ok(x.Transpose())
	data, _ := turned.Copy().Bytes()
	reads := 0
	y := turned.Deferred(func() []byte { reads++; return bytes.Clone(data) })
	assert.Equal(t, floats(turned), floats(y))
	assert.Equal(t, turned.Copy(), y.Copy())
	part := ok(y.Slice(0, 1, 3))
	back := ok(part.Transpose())
	assert.Equal(t, []float64{1, 2, 5, 6, 9, 10}, floats(back))
	assert.Positive(t, reads)
}
