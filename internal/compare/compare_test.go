package compare_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// of makes a tensor, with one row unless there is a shape.
func of[T tensor.Element](t testing.TB, values []T, shape ...int) *tensor.Tensor {
	if shape == nil {
		shape = []int{len(values)}
	}
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

// fromBytes makes a tensor of any type.
func fromBytes(t testing.TB, d tensor.DType, shape []int, data []byte) *tensor.Tensor {
	x, err := tensor.New(d, shape, data)
	require.NoError(t, err)
	return x
}

func tensors(t testing.TB, g, a *tensor.Tensor, tol compare.Tolerance) compare.Result {
	r, err := compare.Tensors(g, a, tol)
	require.NoError(t, err)
	return r
}

func TestRule(t *testing.T) {
	up, down := math.Nextafter(1, 2), math.Nextafter(1, 0)
	for _, row := range []struct {
		reason     string
		g, a       float64
		tol        compare.Tolerance
		mismatches int
	}{
		{"equal values match with no tolerance", 1, 1, compare.Tolerance{}, 0},
		{"zeros of both signs are equal", 0, math.Copysign(0, -1), compare.Tolerance{}, 0},
		{"the least difference counts without tolerance", 1, up, compare.Tolerance{}, 1},
		{"atol hit exactly passes", 1, 1.5, compare.Tolerance{Atol: 0.5}, 0},
		{"one step above atol fails", 1, math.Nextafter(1.5, 2), compare.Tolerance{Atol: 0.5}, 1},
		{"rtol hit exactly passes", 8, 9, compare.Tolerance{Rtol: 0.125}, 0},
		{"rtol is of the golden value: 9 against 8 is more than 1/9", 8, 9, compare.Tolerance{Rtol: 1. / 9}, 1},
		{"rtol is of the golden value: 8 against 9 is 1/9", 9, 8, compare.Tolerance{Rtol: 1. / 9}, 0},
		{"atol and rtol are added", -8, -9.5, compare.Tolerance{Atol: 0.5, Rtol: 0.125}, 0},
		{"one step above the sum fails", -8, math.Nextafter(-9.5, -10), compare.Tolerance{Atol: 0.5, Rtol: 0.125}, 1},
		{"one step less than atol fails", 2, 1, compare.Tolerance{Atol: down}, 1},
		{"NaN matches nothing", nan, nan, compare.Tolerance{Atol: 1e9, Rtol: 1e9}, 1},
		{"NaN matches NaN if that is wanted", nan, nan, compare.Tolerance{EqualNaN: true}, 0},
		{"NaN does not match a number with EqualNaN", nan, 1, compare.Tolerance{Atol: 1e9, EqualNaN: true}, 1},
		{"a number does not match NaN with EqualNaN", 1, nan, compare.Tolerance{Atol: 1e9, EqualNaN: true}, 1},
		{"NaN does not match infinity with EqualNaN", inf, nan, compare.Tolerance{EqualNaN: true}, 1},
		{"an infinity matches itself", inf, inf, compare.Tolerance{}, 0},
		{"and the negative one", -inf, -inf, compare.Tolerance{}, 0},
		{"infinities of other signs differ", inf, -inf, compare.Tolerance{Rtol: 1}, 1},
		{"an infinite golden value is not within rtol·∞ of a number", inf, 1, compare.Tolerance{Rtol: 1}, 1},
		{"nor is a number of an infinite actual value",
			1, inf, compare.Tolerance{Atol: math.MaxFloat64, Rtol: math.MaxFloat64}, 1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			// Alone, and among other values, where the fast loop runs first.
			for _, n := range []int{1, 3000} {
				g, a := make([]float64, n), make([]float64, n)
				g[n-1], a[n-1] = row.g, row.a
				r := tensors(t, of(t, g), of(t, a), row.tol)
				assert.Equal(t, row.mismatches, r.Mismatches)
				assert.Equal(t, n*row.mismatches-1, r.FirstMismatch)
				assert.Equal(t, row.mismatches, explain(t, of(t, g), of(t, a), row.tol).BadColumns.Count, "Explain applies the same rule")
			}
		})
	}
}

func TestIntegersAreExact(t *testing.T) {
	lenient := compare.Tolerance{Atol: 100, Rtol: 1}
	for _, row := range []struct {
		reason     string
		g, a       *tensor.Tensor
		mismatches int
		distance   float64
	}{
		{"the tolerance does not count for integers", of(t, []int8{1}), of(t, []int8{2}), 1, 1},
		{"nor for bools", of(t, []bool{false}), of(t, []bool{true}), 1, 1},
		{"any byte but 0 is true", fromBytes(t, tensor.Bool, []int{1}, []byte{2}), of(t, []bool{true}), 0, 0},
		{"next to an integer a bool is 0 or 1", of(t, []bool{true}), of(t, []int64{1}), 0, 0},
		{"float64 has no 2^53+1", of(t, []int64{1 << 53}), of(t, []int64{1<<53 + 1}), 1, 1},
		{"a negative number is not its two's complement", of(t, []int64{-1}), of(t, []uint64{math.MaxUint64}), 1, 0x1p64},
		{"the largest distance of mixed signs", of(t, []int64{math.MinInt64}), of(t, []uint64{math.MaxUint64}), 1, 0x1p64 + 0x1p63},
		{"the largest distance of int64", of(t, []int64{math.MinInt64}), of(t, []int64{math.MaxInt64}), 1, 0x1p64},
		{"equal uint64 above int64", of(t, []uint64{1 << 63}), of(t, []uint64{1 << 63}), 0, 0},
		{"next to a float the tolerance does not count either: ids", of(t, []int64{1}), of(t, []float32{2}), 1, 1},
		{"a float with the value of an integer", of(t, []int8{-3}), of(t, []float32{-3}), 0, 0},
		{"a float between two integers", of(t, []int8{1}), of(t, []float64{1.5}), 1, 0.5},
		{"float64 has no 2^53+1, which is not 2^53", of(t, []uint64{1<<53 + 1}), of(t, []float64{1 << 53}), 1, 1},
		{"nor has int64 below zero", of(t, []int64{-1<<53 - 1}), of(t, []float64{-1 << 53}), 1, 1},
		{"float64 has 2^53+2", of(t, []uint64{1<<53 + 2}), of(t, []float64{1<<53 + 2}), 0, 0},
		{"float32 has no 2^24+1 and 2^40+1", of(t, []int64{1<<40 + 1}), of(t, []float32{1 << 40}), 1, 1},
		{"the largest uint64 is not 2^64", of(t, []uint64{math.MaxUint64}), of(t, []float64{0x1p64}), 1, 1},
		{"the largest int64 is not 2^63", of(t, []int64{math.MaxInt64}), of(t, []float64{0x1p63}), 1, 1},
		{"the least int64 is −2^63", of(t, []int64{math.MinInt64}), of(t, []float64{-0x1p63}), 0, 0},
		{"a distance that float64 has not is rounded", of(t, []uint64{math.MaxUint64}), of(t, []float64{0.5}), 1, 0x1p64},
	} {
		t.Run(row.reason, func(t *testing.T) {
			for _, swap := range []bool{false, true} {
				g, a := row.g, row.a
				if swap {
					g, a = a, g
				}
				r := tensors(t, g, a, lenient)
				assert.Equal(t, row.mismatches, r.Mismatches)
				assert.Equal(t, row.distance, r.MaxAbs.Value)
				d := explain(t, g, a, lenient)
				assert.Equal(t, []int{row.mismatches, 1 - row.mismatches}, []int{d.Mismatches, d.Equal}, "explained")
			}
		})
	}
}

func TestTiesTakeTheFirst(t *testing.T) {
	const n = 5000 // more than two blocks
	g, a := make([]float64, n), make([]float64, n)
	for i := range g {
		g[i], a[i] = 1, 1
	}
	for _, i := range []int{700, 2500, 4999} {
		a[i] = 3
	}
	r := tensors(t, of(t, g, 50, 100), of(t, a, 50, 100), compare.Tolerance{})
	assert.Equal(t, 700, r.MaxAbs.Index)
	assert.Equal(t, 700, r.MaxRel.Index)
	assert.Equal(t, 700, r.FirstMismatch)
	assert.Equal(t, 7, r.WorstRow.Index)
	assert.Equal(t, 3, r.Mismatches)

	a[2500], a[4999] = 2, 1
	r = tensors(t, of(t, g), of(t, a), compare.Tolerance{})
	assert.Equal(t, 2.0, r.WorstRow.MaxAbs, "the maximum of the whole row, which spans three blocks")

	r = tensors(t, of(t, g), of(t, g), compare.Tolerance{})
	assert.Equal(t, compare.Extreme{Value: 0, Index: 0, Golden: 1, Actual: 1}, r.MaxAbs,
		"numpy's argmax of equal values is the first")
	assert.Equal(t, 0, r.MaxRel.Index)
	assert.Equal(t, inf, r.SNR)

	g[0], a[0] = nan, 1
	r = tensors(t, of(t, g), of(t, g), compare.Tolerance{})
	assert.Equal(t, 1, r.MaxAbs.Index, "the first finite pair")
}

func TestScalarAndEmpty(t *testing.T) {
	r := tensors(t, of(t, []float32{2}, []int{}...), of(t, []float32{3}, []int{}...), compare.Tolerance{})
	assert.Equal(t, []int{1, 1, 1}, []int{r.N, r.Rows, r.RowLen})
	assert.Equal(t, 0.5, r.WorstRow.RelL2)

	for _, shape := range [][]int{{0}, {3, 0}, {0, 3}} {
		e := of(t, []float32(nil), shape...)
		r = tensors(t, e, e, compare.Tolerance{})
		assert.Zero(t, r.N)
		assert.Zero(t, r.SNR)
		assert.Equal(t, []int{-1, -1, -1, -1}, []int{r.FirstMismatch, r.MaxAbs.Index, r.MaxRel.Index, r.WorstRow.Index})
		assert.Zero(t, explain(t, e, e, compare.Tolerance{}).Mismatches)
		v, err := compare.Default(tensor.F32, tensor.F32).Judge(e, e, compare.References{})
		require.NoError(t, err)
		assert.True(t, v.Pass)
	}
}

func TestErrors(t *testing.T) {
	g := of(t, []float64{1, 2, 3, 4})
	for _, bad := range []compare.Tolerance{{Atol: -1}, {Rtol: -1e-9}, {Atol: nan}, {Rtol: nan}, {Atol: inf},
		{Rtol: inf}} {
		_, err := compare.Tensors(g, g, bad)
		var misuse *compare.MisuseError
		assert.ErrorAs(t, err, &misuse, "%+v", bad)
		_, err = compare.Explain(g, g, bad)
		assert.ErrorAs(t, err, &misuse, "%+v", bad)
	}
	for _, shape := range [][]int{{2, 2}, {1, 4}} {
		_, err := compare.Tensors(g, of(t, []float64{1, 2, 3, 4}, shape...), compare.Tolerance{})
		var wrong *compare.ShapeError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, []int{4}, wrong.Golden)
		assert.Equal(t, shape, wrong.Actual)
	}
	_, err := compare.Tensors(g, nil, compare.Tolerance{})
	assert.Error(t, err)
}

func TestBelowRounding(t *testing.T) {
	for _, row := range []struct {
		reason string
		tol    compare.Tolerance
		dtype  tensor.DType
		below  bool
	}{
		{"bfloat16 rounds by up to 2^-8", compare.Tolerance{Atol: 1e-5, Rtol: 1e-4}, tensor.BF16, true},
		{"the usual tolerance of bfloat16", compare.Tolerance{Atol: 2e-2, Rtol: 2e-2}, tensor.BF16, false},
		{"exactly the rounding is enough", compare.Tolerance{Rtol: 0x1p-8}, tensor.BF16, false},
		{"the same tolerance is fine for float32", compare.Tolerance{Atol: 1e-5, Rtol: 1e-4}, tensor.F32, false},
		{"integers are not rounded", compare.Tolerance{}, tensor.I32, false},
		{"bit equality of floats", compare.Tolerance{}, tensor.F32, true},
	} {
		need, below := row.tol.BelowRounding(row.dtype)
		assert.Equal(t, row.below, below, row.reason)
		assert.Equal(t, row.dtype.Epsilon(), need, row.reason)
	}
}

func TestSumIsCompensated(t *testing.T) {
	assert.Equal(t, 2.0, compare.Sum(1, 1e100, 1, -1e100), "small before large, and after it")
	assert.Equal(t, inf, compare.Sum(1, math.MaxFloat64, math.MaxFloat64, 1), "an overflow is infinite, not NaN")
}

// The worst row is that of the formula, in whatever order the rows are.
func TestWorstRowAgainstAllRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, row := range []struct {
		reason string
		norm   func(i int) float64 // of the golden row
		err    func(i int) float64 // of the error, relative to the row
	}{
		{"rows alike", func(int) float64 { return 1 }, func(int) float64 { return rnd.Float64() }},
		{"norms over ten decades", func(int) float64 { return math.Pow(10, 10*rnd.Float64()) },
			func(int) float64 { return rnd.Float64() }},
		{"rising norms with falling error: all rows may be the worst", func(i int) float64 { return 1 + float64(i) },
			func(i int) float64 { return 1 / math.Sqrt(1+float64(i)) }},
		{"falling norms with rising error", func(i int) float64 { return 5000 - float64(i) },
			func(i int) float64 { return 1 / math.Sqrt(5000-float64(i)) }},
		{"one sink row", func(i int) float64 { return map[bool]float64{true: 1e4, false: 1}[i == 17] },
			func(int) float64 { return rnd.Float64() }},
		{"many equal rows", func(i int) float64 { return float64(i % 3) },
			func(i int) float64 { return float64(i % 5) }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			for _, rowLen := range []int{1, 63, 64} {
				const rows = 3000
				g, a := make([]float64, rows*rowLen), make([]float64, rows*rowLen)
				for i := range rows {
					g[i*rowLen] = row.norm(i)
					a[i*rowLen] = g[i*rowLen] + row.err(i)*g[i*rowLen]
				}
				r := tensors(t, of(t, g, rows, rowLen), of(t, a, rows, rowLen), compare.Tolerance{})
				f := 0.1
				if rowLen < 64 {
					f = 1
				}
				least := f * r.NormGolden / math.Sqrt(rows)
				score := func(i int) float64 { return math.Abs(a[i*rowLen]-g[i*rowLen]) / max(g[i*rowLen], least) }
				worst := 0
				for i := range rows {
					if score(i) > score(worst)*(1+1e-13) {
						worst = i
					}
				}
				assert.InEpsilon(t, score(worst), r.WorstRow.RelL2, 1e-12)
				assert.InEpsilon(t, score(worst), score(r.WorstRow.Index), 1e-12)
				if row.reason == "many equal rows" {
					assert.Equal(t, worst, r.WorstRow.Index, "the first of equal rows")
				}
				at := r.WorstRow.Index * rowLen
				assert.Equal(t, math.Abs(a[at]-g[at]), r.WorstRow.MaxAbs)
			}
		})
	}
}

// Rows with equal errors and norms below the least denominator tie, whatever their norms.
func TestWorstRowOfEqualErrors(t *testing.T) {
	const rows = 3000
	g, a := make([]float64, rows), make([]float64, rows)
	for i := range g {
		g[i] = (1 - float64(i)*0x1p-20) * 0x1p-10
		a[i] = g[i] + 1
	}
	g[rows-1], a[rows-1] = 1e6, 1e6+2
	r := tensors(t, of(t, g, rows, 1), of(t, a, rows, 1), compare.Tolerance{})
	assert.Equal(t, []int{0, rows - 1}, []int{r.WorstRow.Index, r.WorstRow.MaxAbsRow})
	assert.Equal(t, []float64{1, 2}, []float64{r.WorstRow.MaxAbs, r.MaxAbs.Value})
}

// A sink token has nearly all of the norm: global metrics do not see that 15 of 16 rows are wrong,
// the worst row does.
func TestSinkRow(t *testing.T) {
	g, a := make([]float64, 16*64), make([]float64, 16*64)
	rnd := rand.New(rand.NewPCG(3, 3))
	for i := range g {
		g[i] = rnd.NormFloat64()
		if i < 64 {
			g[i] *= 1000
		}
		a[i] = g[i]
		if i >= 64 {
			a[i] = -g[i]
		}
	}
	for _, r := range []struct {
		sink, limit, least, most float64
		reason                   string
	}{
		{1, 0.999, 0.99, 1, "rows under a tenth of the RMS count less"},
		{100, 0.1, -1, -1 + 1e-12, "norm 10 times the others', RMS 2.7 times"},
	} {
		for i := range 64 {
			g[i] /= r.sink
			a[i] = g[i]
		}
		v, err := compare.Criteria{compare.Cosine: r.limit}.Judge(of(t, g, 16, 64), of(t, a, 16, 64), compare.References{})
		require.NoError(t, err)
		assert.Greater(t, v.Result.WorstRow.RelL2, 0.01)
		require.Len(t, v.Violations, 1)
		assert.Equal(t, "row_cosine", v.Violations[0].Criterion)
		assert.True(t, v.Violations[0].Got >= r.least-1e-12 && v.Violations[0].Got <= r.most, r.reason)
	}
}

func TestTruncatedMapping(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only tested on Linux")
	}
	path := filepath.Join(t.TempDir(), "golden.bin")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	f, err := raw.Open(path, raw.Spec{DType: tensor.F32, Shape: []int{256, 1024}})
	require.NoError(t, err)
	defer f.Close()
	g := f.Tensors[0].Tensor
	require.NoError(t, os.Truncate(path, 100))
	a := of(t, make([]float32, 1<<18), 256, 1024)
	var fault *compare.FaultError
	_, err = compare.Tensors(g, a, compare.Tolerance{})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, []string{path}, fault.Files)
	assert.ErrorContains(t, err, "golden.bin")
	_, err = compare.Explain(a, g, compare.Tolerance{})
	require.ErrorAs(t, err, &fault)
	_, err = compare.Criteria{compare.Noise: 1.0}.Judge(a, a, compare.References{Float64: g})
	require.ErrorAs(t, err, &fault)
	var re runtime.Error
	assert.True(t, errors.As(err, &re))
}

func TestStats(t *testing.T) {
	large := make([]float64, 3*compare.PieceLen+5)
	for i := range large {
		large[i] = 1000 + float64(i%3)
	}
	for _, r := range []struct {
		values []float64
		want   compare.Stats
		reason string
	}{
		{nil, compare.Stats{}, "empty"},
		{[]float64{3}, compare.Stats{Min: 3, Max: 3, Mean: 3}, "one"},
		{[]float64{nan, 1, -2, inf, 4, -inf}, compare.Stats{Min: -2, Max: 4, Mean: 1, NaN: 1, Inf: 2}, "others are counted"},
		{[]float64{nan, inf}, compare.Stats{NaN: 1, Inf: 1}, "nothing is finite"},
		{large, compare.Stats{Min: 1000, Max: 1002, Mean: 1001}, "several blocks"},
	} {
		for _, d := range []tensor.DType{tensor.F64, tensor.F32} {
			var data []byte
			for _, v := range r.values {
				data = appendValue(data, d, v)
			}
			got, err := compare.StatsOf(fromBytes(t, d, []int{len(r.values)}, data))
			require.NoError(t, err)
			assert.InDelta(t, r.want.Mean, got.Mean, 1e-3, r.reason)
			got.Mean = r.want.Mean
			assert.Equal(t, r.want, got, r.reason)
		}
	}
}
