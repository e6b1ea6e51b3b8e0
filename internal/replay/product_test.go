package replay_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// TestProduct compares products around the sizes of blocks and tiles with plain sums: in assembly and in
// Go, in float32 and in float64, on one processor and on several, which gives equal bits.
func TestProduct(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range []struct {
		m, k, n int
		reason  string
	}{
		{1, 1, 1, "one element"}, {5, 3, 15, "less than a tile"}, {6, 256, 16, "one tile, one block"},
		{7, 257, 17, "one more of each"}, {193, 2, 257, "more than a block of rows and of columns"},
		{200, 520, 264, "several blocks each way, in several goroutines"},
	} {
		x, y := make([]float32, r.m*r.k), make([]float32, r.n*r.k)
		for _, v := range [][]float32{x, y} {
			for i := range v {
				v[i] = float32(random.NormFloat64())
			}
		}
		for _, dtype := range []tensor.DType{tensor.F32, tensor.BF16} {
			p := productOf(t, dtype, r.m, r.k, r.n)
			load := loadOf(t, dtype, x, y)
			for _, mode := range []replay.Mode{{}, {Wide: true}} {
				var first []float64
				for _, processors := range []int{1, 3} {
					before := runtime.GOMAXPROCS(processors)
					got, err := replay.Run(t.Context(), p, load, mode)
					runtime.GOMAXPROCS(before)
					require.NoError(t, err, r.reason)
					if first == nil {
						first = got.Floats()
					}
					require.Equal(t, first, got.Floats(), r.reason)
				}
				undo := replay.Vector(false)
				plain, err := replay.Run(t.Context(), p, load, mode)
				undo()
				require.NoError(t, err, r.reason)
				want := sumsOf(dtype, x, y, r.m, r.k, r.n)
				limit := map[bool]float64{false: 1e-6, true: 1e-14}[mode.Wide] * math.Sqrt(float64(r.k)) * 8
				require.InDeltaSlice(t, want, first, limit, r.reason)
				require.InDeltaSlice(t, want, plain.Floats(), limit, r.reason)
			}
		}
	}
}

// TestOperands rounds both operands of a product, and nothing else.
func TestOperands(t *testing.T) {
	p := productOf(t, tensor.F32, 1, 2, 1)
	whole := func(a *replay.Array, _ replay.Operand) *replay.Array {
		x := a.Floats()
		for i, v := range x {
			x[i] = math.Round(v)
		}
		out, err := replay.Of(a.DType(), a.Shape(), x)
		require.NoError(t, err)
		return out
	}
	got, err := replay.Run(t.Context(), p, loadOf(t, tensor.F32, []float32{1.25, 2}, []float32{3, 0.75}), replay.Mode{Operands: whole})
	require.NoError(t, err)
	require.Equal(t, []float64{5}, got.Floats())
}

// TestOperandsOf says what each operand of a product, and a table, is.
func TestOperandsOf(t *testing.T) {
	x, w := input(tensor.F32, 2, 3), program.Value{DType: tensor.F32, Shape: []int{3, 4}, Weight: "w"}
	long, heads := input(tensor.F32, 1, 2, 5), input(tensor.F32, 1, 1, 2, 3)
	kernel := program.Value{DType: tensor.F32, Shape: []int{3, 2, 2}, Weight: "w"}
	ids := program.Value{DType: tensor.I64, Shape: []int{2}, Input: "x"}
	weight, weighted := replay.Operand{Weight: true, Weighted: true}, replay.Operand{Weighted: true}
	of := func(o replay.Operand, sum int) replay.Operand { o.Sum = sum; return o }
	for _, r := range []struct {
		values []program.Value
		op     program.Op
		want   []replay.Operand
		reason string
	}{
		{[]program.Value{x, w, made(tensor.F32, 2, 4)}, op("aten.mm.default", 2, "self", program.ID(0), "mat2", program.ID(1)),
			[]replay.Operand{of(weighted, 1), weight}, "a projection"},
		{[]program.Value{x, x, made(tensor.F32, 2, 2)}, op("aten.matmul.default", 2, "self", program.ID(0), "other", program.ID(1)), nil, "no operator of the table"},
		{[]program.Value{input(tensor.F32, 1, 2, 3), input(tensor.F32, 1, 3, 2), made(tensor.F32, 1, 2, 2)},
			op("aten.bmm.default", 2, "self", program.ID(0), "mat2", program.ID(1)), []replay.Operand{{Sum: 2}, {Sum: 1}}, "no weight"},
		{[]program.Value{x, {DType: tensor.F32, Shape: []int{3}, Weight: "w"}, made(tensor.F32, 2)},
			op("aten.mv.default", 2, "self", program.ID(0), "vec", program.ID(1)), []replay.Operand{{Sum: 1}, {Sum: 0}}, "a weight of one axis is none"},
		{[]program.Value{long, kernel, made(tensor.F32, 1, 3, 4)}, op("aten.convolution.default", 2, "input", program.ID(0), "weight", program.ID(1), "bias", nil,
			"stride", []int{1}, "padding", []int{0}, "dilation", []int{1}, "transposed", false, "output_padding", []int{0}, "groups", 1),
			[]replay.Operand{of(weighted, 2), of(weight, 1)}, "over all but the output channels"},
		{[]program.Value{w, ids, made(tensor.F32, 2, 4)}, op("aten.embedding.default", 2, "weight", program.ID(0), "indices", program.ID(1)),
			[]replay.Operand{{Weight: true, Table: true, Sum: 1}}, "a table"},
		{[]program.Value{heads, heads, made(tensor.F32, 1, 1, 2, 3)}, op("aten.scaled_dot_product_attention.default", 2, "query", program.ID(0), "key", program.ID(1),
			"value", program.ID(1)), []replay.Operand{{Sum: 3}, {Sum: 3}, {Sum: 3}, {Sum: 2}}, "queries and keys, queries and values"},
	} {
		var got []replay.Operand
		x := make([]float64, 12)
		_, err := replay.Run(t.Context(), pieceOf(t, r.values, r.op), numbers(t, x...), replay.Mode{Operands: func(a *replay.Array, o replay.Operand) *replay.Array {
			got = append(got, o)
			return a
		}})
		require.Equal(t, r.want == nil, err != nil, "%s: %v", r.reason, err)
		require.Equal(t, r.want, got, r.reason)
	}
}

// productOf is x·yᵀ of x in float32 and y in a type.
func productOf(t testing.TB, dtype tensor.DType, m, k, n int) *program.Piece {
	x, y, turned := input(tensor.F32, m, k), input(dtype, n, k), made(dtype, k, n)
	y.Input = "y"
	return pieceOf(t, []program.Value{x, y, turned, made(tensor.F32, m, n)},
		op("aten.transpose.int", 2, "self", program.ID(1), "dim0", 0, "dim1", 1),
		op("aten.mm.default", 3, "self", program.ID(0), "mat2", program.ID(2)))
}

func loadOf(t testing.TB, dtype tensor.DType, x, y []float32) replay.Load {
	data := map[string][]byte{"x": bytesOf(x, tensor.F32), "y": bytesOf(y, dtype)}
	return func(v *program.Value) (*replay.Array, error) {
		a, err := tensor.New(v.DType, v.Shape, data[v.Input])
		require.NoError(t, err)
		return replay.FromTensor(a)
	}
}

// sumsOf is x·yᵀ by loops.
func sumsOf(dtype tensor.DType, x, y []float32, m, k, n int) []float64 {
	cut := uint32(0xffffffff)
	if dtype == tensor.BF16 {
		cut = 0xffff0000
	}
	out := make([]float64, m*n)
	for i := range out {
		for d := range k {
			v := math.Float32frombits(math.Float32bits(y[i%n*k+d]) & cut)
			out[i] += float64(x[i/n*k+d]) * float64(v)
		}
	}
	return out
}

// BenchmarkProduct is that of 64 tokens with a matrix of a 7B model.
func BenchmarkProduct(b *testing.B) {
	const m, k, n = 64, 4096, 11008
	x, w := counted(m*k), counted(n*k)
	rate := func(b *testing.B) { b.ReportMetric(m*k*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s") }
	for _, r := range []struct {
		name  string
		dtype tensor.DType
		mode  replay.Mode
	}{
		{"float32", tensor.F32, replay.Mode{}},
		{"bfloat16", tensor.BF16, replay.Mode{}},
		{"float64", tensor.BF16, replay.Mode{Wide: true}},
	} {
		p, load := productOf(b, r.dtype, m, k, n), loadOf(b, r.dtype, x, w)
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := replay.Run(b.Context(), p, load, r.mode)
				require.NoError(b, err)
			}
			rate(b)
		})
	}
}

// bytesOf are numbers as float32, or their upper halves.
func bytesOf(x []float32, d tensor.DType) []byte {
	out := make([]byte, 0, len(x)*d.Size())
	for _, v := range x {
		bits := math.Float32bits(v)
		if d == tensor.F32 {
			out = binary.LittleEndian.AppendUint16(out, uint16(bits))
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(bits>>16))
	}
	return out
}

func counted(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%17) / 16
	}
	return x
}
