package replay_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// pieceOf is a program that makes its last value.
func pieceOf(t testing.TB, values []program.Value, ops ...program.Op) *program.Piece {
	p := &program.Program{Values: values, Ops: ops, Ports: []program.Port{{Value: program.ID(len(values) - 1), At: len(ops), Until: len(ops)}}}
	require.NoError(t, p.Check())
	return p.Piece(0, func(int) bool { return false })
}

func input(dtype tensor.DType, shape ...int) program.Value {
	return program.Value{DType: dtype, Shape: shape, Input: "x"}
}

func made(dtype tensor.DType, shape ...int) program.Value {
	return program.Value{DType: dtype, Shape: shape}
}

func op(full string, out program.ID, args ...any) program.Op {
	o := program.Op{Full: full, Out: []program.ID{out}, Layer: "model", Stack: -1}
	for i := 0; i < len(args); i += 2 {
		o.Args = append(o.Args, program.Arg{Name: args[i].(string), Value: args[i+1]})
	}
	return o
}

// numbers loads the same for every value from outside.
func numbers(t *testing.T, x ...float64) replay.Load {
	return func(v *program.Value) (*replay.Array, error) {
		n := 1
		for _, d := range v.Shape {
			n *= d
		}
		require.LessOrEqual(t, n, len(x))
		return replay.Of(v.DType, v.Shape, x[:n])
	}
}

func TestRun(t *testing.T) {
	third := op("aten.div.Tensor", 1, "self", program.ID(0), "other", 3.0)
	for _, r := range []struct {
		mode   replay.Mode
		in     []float64
		want   []float64
		reason string
	}{
		{replay.Mode{}, []float64{1, 2}, []float64{float64(float32(1) / 3), float64(float32(2) / 3)}, "float32 as recorded"},
		{replay.Mode{Wide: true}, []float64{1, 2}, []float64{1. / 3, 2. / 3}, "no rounding"},
		{replay.Mode{Round: replay.Nearest, To: tensor.BF16}, []float64{1, 2}, []float64{0.333984375, 0.66796875}, "to nearest"},
		{replay.Mode{Round: replay.Zero, To: tensor.BF16}, []float64{1, 2}, []float64{0.33203125, 0.6640625}, "toward zero"},
		{replay.Mode{Round: replay.Zero, To: tensor.F16}, []float64{1, -2}, []float64{0.333251953125, -0.66650390625}, "toward zero, negative, too"},
		{replay.Mode{Round: replay.Nearest, To: tensor.BF16}, []float64{903, 9e30}, []float64{301, float64(float32(9e30) / 3)}, "whole numbers and what denies are exact"},
		{replay.Mode{Round: replay.Zero, To: tensor.F16}, []float64{3 * 65530.5, -3 * 70000.5}, []float64{65504, -65504}, "as large as there is"},
		{replay.Mode{Round: replay.Zero, To: tensor.F16}, []float64{3 * 0x1.8p-15, 3 * -0x1.8p-24}, []float64{0x1.8p-15, -0x1p-24}, "multiples of the least number"},
		{replay.Mode{Round: replay.Nearest, To: tensor.F16}, []float64{1, 3 * 0x1.8p-24}, []float64{0.333251953125, 0x1p-23}, "to nearest, ties to even"},
		{replay.Mode{Round: replay.Nearest, To: tensor.BF16}, []float64{3 * 0x1000001p2, -9e29}, []float64{0x1000002p2, float64(float32(-9e29) / 3)}, "whole, as all that is so large"},
	} {
		p := pieceOf(t, []program.Value{input(tensor.F32, 2), made(tensor.F32, 2)}, third)
		got, err := replay.Run(t.Context(), p, numbers(t, r.in...), r.mode)
		require.NoError(t, err, r.reason)
		assert.Equal(t, r.want, got.Floats(), r.reason)
	}
}

// TestFloat8 rounds to float8 in every mode: that is what the program means.
func TestFloat8(t *testing.T) {
	p := pieceOf(t, []program.Value{input(tensor.F32, 4), made(tensor.F8E4M3FN, 4), made(tensor.F32, 4), made(tensor.F32, 4)},
		op("aten._to_copy.default", 1, "self", program.ID(0), "dtype", tensor.F8E4M3FN),
		op("aten._to_copy.default", 2, "self", program.ID(1), "dtype", tensor.F32),
		op("aten.div.Tensor", 3, "self", program.ID(2), "other", 4.0))
	for _, m := range []replay.Mode{{}, {Wide: true}, {Round: replay.Nearest, To: tensor.BF16}} {
		got, err := replay.Run(t.Context(), p, numbers(t, 1.03, 17, 460, -0.01), m)
		require.NoError(t, err)
		assert.Equal(t, []float64{0.25, 4, 112, -0.00244140625}, got.Floats())
	}
}

// TestShake finds each result within half a unit, not all the same, and the same at each run.
func TestShake(t *testing.T) {
	x := make([]float64, 1000)
	for i := range x {
		x[i] = 1.9 + float64(i)/1e4
	}
	p := pieceOf(t, []program.Value{input(tensor.F32, 1000), made(tensor.F32, 1000)}, op("aten.sqrt.default", 1, "self", program.ID(0)))
	run := func(m replay.Mode) []float64 {
		a, err := replay.Run(t.Context(), p, numbers(t, x...), m)
		require.NoError(t, err)
		return a.Floats()
	}
	plain, shaken := run(replay.Mode{}), run(replay.Mode{Round: replay.Shake})
	assert.Equal(t, shaken, run(replay.Mode{Round: replay.Shake}), "deterministic")
	differ := 0
	for i, v := range plain {
		if shaken[i] != v {
			differ++
		}
		assert.LessOrEqual(t, math.Abs(shaken[i]-v), 0x1p-22)
	}
	assert.Greater(t, differ, 100)
}

func TestOpaque(t *testing.T) {
	two := []program.Value{input(tensor.F32, 2), made(tensor.F32, 2)}
	for _, r := range []struct {
		values []program.Value
		op     program.Op
		want   string
		reason string
	}{
		{two, op("custom.thing.default", 1, "self", program.ID(0)), `custom.thing.default in "model": the operator is not known`, "an unknown operator"},
		{two, op("aten.mul.Tensor", 1, "self", program.ID(0)), "no other", "a missing operand"},
		{[]program.Value{input(tensor.F32, 2), made(tensor.F32, 3)}, op("aten.relu.default", 1, "self", program.ID(0)), "makes [2], not [3] as recorded", "another shape than recorded"},
		{two, op("aten.slice.Tensor", 1, "self", program.ID(0), "dim", 4), "axis 4 of 1", "an axis that is not there"},
		{two, op("aten.slice.Tensor", 1, "self", program.ID(0), "dim", 1), "axis 1 of 1", "one after the last"},
		{two, op("aten.slice.Tensor", 1, "self", program.ID(0), "dim", -2), "axis -2 of 1", "one before the first"},
		{two, op("aten.tril.default", 1, "self", program.ID(0)), "a triangle of [2]", "one axis"},
		{[]program.Value{input(tensor.F32, 2), made(tensor.F32, 1<<16, 1<<14)}, op("aten.full.default", 1), "elements", "more than fits into memory"},
		{[]program.Value{input(tensor.F32, 2), {Shape: []int{2}, Type: "quint4x2"}}, op("aten.relu.default", 1, "self", program.ID(0)), "without arithmetic", "a type that is not known"},
	} {
		_, err := replay.Run(t.Context(), pieceOf(t, r.values, r.op), numbers(t, 1, 2), replay.Mode{})
		var e *replay.OpaqueError
		require.True(t, errors.As(err, &e), r.reason)
		assert.ErrorContains(t, err, r.want, r.reason)
	}
	_, err := replay.Run(t.Context(), pieceOf(t, two, op("aten.relu.default", 1, "self", program.ID(0))),
		func(*program.Value) (*replay.Array, error) { return nil, errors.New("no weights") }, replay.Mode{})
	assert.EqualError(t, err, "no weights")
}

// TestGuarded refuses a piece that the reference would not have run on other numbers.
func TestGuarded(t *testing.T) {
	nan := math.NaN()
	for _, r := range []struct {
		dtype  tensor.DType
		equal  []float64
		has    []float64
		runs   bool
		reason string
	}{
		{tensor.I64, []float64{3, 4}, []float64{3, 4}, true, "the same"},
		{tensor.I64, []float64{3e7, 4}, []float64{3e7 + 1, 4}, false, "a whole number that is another"},
		{tensor.F32, []float64{3, nan}, []float64{3.000001, nan}, true, "floats that are nearly the same"},
		{tensor.F32, []float64{3, 4}, []float64{3, 4.00001}, false, "another float"},
		{tensor.F32, []float64{nan, 4}, []float64{3, 4}, false, "no NaN"},
		{tensor.F32, nil, []float64{3, 4}, false, "what is not told never holds"},
	} {
		p := &program.Program{Values: []program.Value{input(r.dtype, 2), made(r.dtype, 2)}, Ops: []program.Op{op("aten.neg.default", 1, "self", program.ID(0))},
			Ports:  []program.Port{{Value: 1, At: 1, Until: 1}},
			Guards: []program.Guard{{Value: 0, Equal: r.equal, First: 0, End: 1}}}
		require.NoError(t, p.Check())
		piece := p.Piece(0, func(int) bool { return false })
		_, err := replay.Run(t.Context(), piece, numbers(t, r.has...), replay.Mode{})
		e, refused := errors.AsType[*replay.OpaqueError](err)
		assert.Equal(t, r.runs, err == nil, r.reason)
		assert.True(t, r.runs || refused && e.Free == replay.Other, r.reason)
		_, err = replay.Run(t.Context(), piece, numbers(t, r.has...), replay.Mode{Wide: true})
		assert.NoError(t, err, "other modes do not ask")
	}
	_, err := replay.Run(t.Context(), pieceOf(t, []program.Value{input(tensor.F32, 2), made(tensor.F32, 2)}, op("aten.neg.default", 1, "self", program.ID(0))),
		numbers(t, 1, 2), replay.Mode{Round: replay.Nearest, To: tensor.F32})
	assert.ErrorContains(t, err, "no rounding to float32")
}

// Complex numbers come from outside as pairs, and numbers that are all the same fall into the middle of their histogram.
func TestSmallOperators(t *testing.T) {
	for _, r := range []struct {
		values []program.Value
		op     program.Op
		want   []float64
		reason string
	}{
		{[]program.Value{{Type: "complex64", Shape: []int{2}, Input: "x"}, made(tensor.F32, 2)}, op("aten.abs.default", 1, "self", program.ID(0)),
			[]float64{5, 13}, "the sizes of 3+4i and 5+12i"},
		{[]program.Value{input(tensor.F32, 1), made(tensor.F32, 5)}, op("aten.histc.default", 1, "self", program.ID(0), "bins", 5, "min", 0, "max", 0),
			[]float64{0, 0, 1, 0, 0}, "one number, whose range is empty"},
	} {
		x := map[bool][]float64{true: {3, 4, 5, 12}, false: {3}}[r.values[0].DType == tensor.Invalid]
		got, err := replay.Run(t.Context(), pieceOf(t, r.values, r.op), func(v *program.Value) (*replay.Array, error) {
			if v.DType == tensor.Invalid {
				return replay.Of(tensor.F32, []int{2, 2}, x)
			}
			return replay.Of(v.DType, v.Shape, x)
		}, replay.Mode{})
		require.NoError(t, err, r.reason)
		assert.Equal(t, r.want, got.Floats(), r.reason)
	}
}

// TestFromTensor reads every type, aligned or not, contiguous or not.
func TestFromTensor(t *testing.T) {
	half := []byte{0x00, 0x3c, 0x00, 0xbc, 0x00, 0x40, 0x01, 0x00} // float16 1, −1, 2, 2⁻²⁴
	brain := []byte{0x80, 0x3f, 0x80, 0xbf, 0x00, 0x40, 0x20, 0x41}
	single := []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf, 0, 0, 0, 0x40, 0, 0, 0x20, 0x41}
	for _, r := range []struct {
		dtype  tensor.DType
		data   []byte
		want   []float64
		reason string
	}{
		{tensor.F16, half, []float64{1, -1, 2, 0x1p-24}, "float16"},
		{tensor.BF16, brain, []float64{1, -1, 2, 10}, "bfloat16"},
		{tensor.F32, single, []float64{1, -1, 2, 10}, "float32"},
		{tensor.Bool, []byte{0, 1, 2, 0}, []float64{0, 1, 1, 0}, "bools"},
		{tensor.I8, []byte{0, 1, 0xff, 0x80}, []float64{0, 1, -1, -128}, "bytes"},
		{tensor.F8E4M3FN, []byte{0x38, 0xb8, 0x40, 0}, []float64{1, -1, 2, 0}, "float8"},
	} {
		for offset := range 2 {
			data := append(make([]byte, offset), r.data...)[offset:]
			x, err := tensor.New(r.dtype, []int{2, 2}, data)
			require.NoError(t, err)
			turned, err := x.Transpose()
			require.NoError(t, err)
			for _, v := range []struct {
				t    *tensor.Tensor
				want []float64
			}{{x, r.want}, {turned, []float64{r.want[0], r.want[2], r.want[1], r.want[3]}}} {
				a, err := replay.FromTensor(v.t)
				require.NoError(t, err)
				assert.Equal(t, v.want, a.Floats(), r.reason)
				assert.Equal(t, r.dtype, a.DType(), r.reason)
				if !r.dtype.IsFloat() {
					continue
				}
				p := pieceOf(t, []program.Value{input(tensor.F32, 2, 2), made(tensor.F32, 2, 2)}, op("aten.neg.default", 1, "self", program.ID(0)))
				got, err := replay.Run(t.Context(), p, func(*program.Value) (*replay.Array, error) { return a, nil }, replay.Mode{})
				require.NoError(t, err)
				for i, w := range v.want {
					assert.InDelta(t, -w, got.Floats()[i], 0, "%s, taken as float32", r.reason)
				}
			}
		}
	}
}

// TestTensor gives numbers back as a file may have them.
func TestTensor(t *testing.T) {
	for _, r := range []struct {
		in, out tensor.DType
		x, want []float64
	}{
		{tensor.F64, tensor.F64, []float64{1. / 3, -2}, []float64{1. / 3, -2}},
		{tensor.BF16, tensor.F32, []float64{1. / 3, -2}, []float64{0.333984375, -2}},
		{tensor.Bool, tensor.Bool, []float64{0, 5}, []float64{0, 1}},
		{tensor.I16, tensor.I64, []float64{40000, -7.9}, []float64{40000 - 1<<16, -7}},
		{tensor.U8, tensor.I64, []float64{300, -1}, []float64{44, 255}},
		{tensor.I64, tensor.I64, []float64{1e300, -1 << 40}, []float64{-1 << 63, -1 << 40}},
	} {
		a, err := replay.Of(r.in, []int{2}, r.x)
		require.NoError(t, err)
		x, err := a.Tensor()
		require.NoError(t, err)
		assert.Equal(t, r.out, x.DType())
		assert.Equal(t, r.want, []float64{x.At(0), x.At(1)}, r.in.String())
	}
	_, err := replay.Of(tensor.F32, []int{3}, []float64{1, 2})
	assert.ErrorContains(t, err, "2 numbers for shape [3]")
}
