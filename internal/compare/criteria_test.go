package compare_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

func TestDefaultsAndFloors(t *testing.T) {
	same := func(v float64) compare.Limits { return compare.Limits{RelL2: v, RowRelL2: v} }
	half, brain := compare.Limits{RelL2: 4e-3, RowRelL2: 1e-2}, compare.Limits{RelL2: 3e-2, RowRelL2: 8e-2}
	for _, row := range []struct {
		golden, actual tensor.DType
		limit, floor   compare.Limits
		reason         string
	}{
		{tensor.F64, tensor.F64, same(1e-9), same(3e-10), "float64"},
		{tensor.F32, tensor.F32, same(1e-4), same(3e-5), "float32"},
		{tensor.F32, tensor.F64, same(1e-4), same(3e-5), "float64 next to float32 is no better"},
		{tensor.F16, tensor.F16, half, half, "float16"},
		{tensor.F32, tensor.BF16, brain, brain, "the candidate is coarser"},
		{tensor.BF16, tensor.F32, brain, brain, "the golden is coarser"},
		{tensor.BF16, tensor.F16, brain, brain, "bfloat16 is coarser than float16"},
		{tensor.F8E4M3FN, tensor.BF16, same(0.25), same(0.25), "three bits of mantissa"},
		{tensor.F8E5M2, tensor.F8E4M3FN, same(0.5), same(0.5), "two bits"},
		{tensor.F8E8M0FNU, tensor.F32, same(0.5), same(0.5), "no mantissa"},
	} {
		c := compare.Default(row.golden, row.actual)
		assert.Equal(t, row.limit.Criteria(), c, row.reason)
		assert.Equal(t, row.floor, compare.Floor(row.golden, row.actual), row.reason)
	}
	for _, d := range []tensor.DType{tensor.Bool, tensor.F32} {
		c := compare.Default(tensor.I64, d)
		assert.Equal(t, compare.Criteria{compare.Atol: 0, compare.Rtol: 0}, c, "integers next to %s", d)
		assert.Zero(t, compare.Floor(d, tensor.I64), "integers next to %s", d)
	}
	zeros := compare.Limits{RelL2: 1.5, RowRelL2: 0.5}.Criteria()
	assert.NoError(t, zeros.Validate())
	assert.Equal(t, compare.Limits{RelL2: math.Nextafter(1, 0), RowRelL2: 0.5}, zeros.Limits(),
		"however noisy a reference is, zeros do not pass")
}

func TestAgrees(t *testing.T) {
	limits := compare.Limits{RelL2: 1e-3, RowRelL2: 1e-2}
	for _, row := range []struct {
		r      compare.Result
		want   bool
		reason string
	}{
		{compare.Result{RelL2: 1e-3, WorstRow: compare.Row{RelL2: 1e-2}}, true, "exactly at both limits"},
		{compare.Result{RelL2: 1.1e-3, WorstRow: compare.Row{RelL2: 1e-3}}, false, "the tensor is outside"},
		{compare.Result{RelL2: 1e-4, WorstRow: compare.Row{RelL2: 1.1e-2}}, false, "one row is outside"},
		{compare.Result{BadNonFinite: 1}, false, "a NaN never agrees"},
	} {
		assert.Equal(t, row.want, row.r.Agrees(limits), row.reason)
	}
	assert.Equal(t, compare.Limits{RelL2: 2, RowRelL2: 3},
		compare.Limits{RelL2: 1, RowRelL2: 3}.Max(compare.Limits{RelL2: 2, RowRelL2: 1}))
}

// judge returns the keys of the criteria that do not hold.
func judge(t *testing.T, c compare.Criteria, g, a, ref64 *tensor.Tensor) (names []string) {
	v, err := c.Judge(g, a, compare.References{Float64: ref64})
	require.NoError(t, err)
	for _, x := range v.Violations {
		names = append(names, x.Criterion)
		assert.NotEmpty(t, x.Text)
	}
	assert.Equal(t, len(names) == 0, v.Pass)
	return names
}

func TestCriteria(t *testing.T) {
	g := []float64{4, 3, 2, 1, 8, 6, 4, 2}
	step := math.Nextafter
	other, swapped := []float64{4, 3, 2, 2, 8, 6, 4, 2}, []float64{3, 4, 2, 1, 6, 8, 4, 2}
	with := func(i int, v float64) []float64 {
		a := slices.Clone(g)
		a[i] = v
		return a
	}
	for _, row := range []struct {
		reason string
		c      compare.Criteria
		a      []float64
		want   []string
	}{
		{"all at once hold for equal tensors", compare.Criteria{compare.Atol: 0, compare.RelL2: 0, compare.Cosine: 1,
			compare.MSE: 0, compare.ULP: 0, compare.SNR: 300, compare.KL: 0, compare.TopK: 3}, g, nil},
		{"each is judged", compare.Criteria{compare.Atol: 0, compare.RelL2: 0.1, compare.RowRelL2: 0.1, compare.Cosine: 0.9,
			compare.MSE: 0.1, compare.ULP: 10, compare.SNR: 20, compare.KL: 0.1, compare.TopK: 1}, with(0, -4),
			[]string{"within", "rel_l2", "row_rel_l2", "cosine", "row_cosine", "mse", "ulp", "snr", "top_k", "kl"}},
		{"RelL2 holds for the worst row too: d = 1, ‖g‖ = √150, RMS = √75", compare.Criteria{compare.RelL2: 0.1}, other, []string{"row_rel_l2"}},
		{"a limit of its own for the row", compare.Criteria{compare.RelL2: 0.1, compare.RowRelL2: 0.12}, other, nil},
		{"only the row is asked", compare.Criteria{compare.RowRelL2: 0.1}, other, []string{"row_rel_l2"}},
		{"MSE hit exactly passes: 1/8", compare.Criteria{compare.MSE: 0.125}, other, nil},
		{"MSE one step below fails", compare.Criteria{compare.MSE: step(0.125, 0)}, other, []string{"mse"}},
		{"two ULP pass at two", compare.Criteria{compare.ULP: 2}, with(2, step(step(2, 3), 3)), nil},
		{"three ULP fail at two, also across a power of two", compare.Criteria{compare.ULP: 2},
			with(2, step(step(step(2, 0), 0), 0)), []string{"ulp"}},
		{"SNR of 20·log10(√150/1) = 21.76 dB", compare.Criteria{compare.SNR: 21.7}, other, nil},
		{"SNR under the limit", compare.Criteria{compare.SNR: 21.8}, other, []string{"snr"}},
		{"top 2 as a set: their order does not count", compare.Criteria{compare.TopK: 2}, swapped, nil},
		{"top 1 is another", compare.Criteria{compare.TopK: 1}, swapped, []string{"top_k"}},
		{"a constant row has nothing on top", compare.Criteria{compare.TopK: 2}, make([]float64, 8), []string{"top_k"}},
		{"cosine is blind to scale", compare.Criteria{compare.Cosine: 1 - 1e-15}, []float64{8, 6, 4, 2, 16, 12, 8, 4}, nil},
		{"a NaN fails a cosine-only check", compare.Criteria{compare.Cosine: 0.5}, with(1, nan), []string{"non_finite"}},
		{"a NaN fails top k", compare.Criteria{compare.TopK: 1}, with(1, nan), []string{"non_finite"}},
		{"an infinity fails an MSE-only check", compare.Criteria{compare.MSE: 1e11}, with(1, inf), []string{"non_finite"}},
		{"a NaN is a mismatch as well", compare.Criteria{compare.Atol: 1e5}, with(1, nan), []string{"non_finite", "within"}},
	} {
		assert.Equal(t, row.want, judge(t, row.c, of(t, g, 2, 4), of(t, row.a, 2, 4), nil), row.reason)
	}
}

func TestNaNInBoth(t *testing.T) {
	g := of(t, []float64{nan, 1, inf, -inf})
	for _, c := range []compare.Criteria{{compare.Cosine: 0.5}, {compare.TopK: 1}, {compare.RelL2: 0.9},
		{compare.Atol: 0}} {
		assert.Contains(t, judge(t, c, g, g, nil), "non_finite", "NaN matches nothing")
		c[compare.EqualNaN] = 1
		assert.Empty(t, judge(t, c, g, g, nil), "EqualNaN")
	}
	for _, golden := range []*tensor.Tensor{g, of(t, []float64{0, 1, inf, -inf})} {
		v, err := compare.Criteria{compare.Atol: 1}.Judge(golden, g, compare.References{})
		require.NoError(t, err)
		assert.Equal(t, golden == g, strings.Contains(v.Violations[0].Text, "NaN does not match NaN without EqualNaN"), "the hint is for NaN in both")
	}
}

func TestMisuse(t *testing.T) {
	g := of(t, []float64{1, 2, 3})
	for _, row := range []struct {
		reason string
		c      compare.Criteria
	}{
		{"nothing is asked", compare.Criteria{}},
		{"EqualNaN alone judges nothing", compare.Criteria{compare.EqualNaN: 1}},
		{"a limit that makes no sense, see TestLimits", compare.Criteria{compare.Atol: -1}},
		{"k of a whole row", compare.Criteria{compare.TopK: 3}},
		{"KL that equal logits keep in a row of three", compare.Criteria{compare.KL: math.Log(3)}},
		{"ULP from 0 to 1", compare.Criteria{compare.ULP: 1023 << 52}},
		{"noise without a float64 golden", compare.Criteria{compare.Noise: 2}},
	} {
		_, err := row.c.Judge(g, g, compare.References{})
		var misuse *compare.MisuseError
		assert.ErrorAs(t, err, &misuse, row.reason)
	}
	single := of(t, []float32{1, 2}, 2)
	_, err := compare.Criteria{compare.ULP: 0x3f800000}.Judge(single, single, compare.References{})
	assert.ErrorContains(t, err, "in float32 that accepts 0 in place of 1, want less than 1065353216")
	_, err = compare.Criteria{compare.ULP: 0x3f7fffff}.Judge(single, single, compare.References{})
	assert.NoError(t, err)
	_, err = compare.Criteria{compare.Noise: 2}.Judge(g, g, compare.References{Float64: of(t, []float64{1})})
	var shape *compare.ShapeError
	assert.ErrorAs(t, err, &shape)
}

func TestTopKTies(t *testing.T) {
	for _, row := range []struct {
		reason string
		g, a   []float64
		k      int
		pass   bool
	}{
		{"the golden has two on top: either will do", []float64{5, 5, 1}, []float64{4, 6, 1}, 1, true},
		{"the first of a tie in the candidate counts", []float64{5, 6, 1}, []float64{6, 6, 1}, 1, false},
		{"a constant candidate does not pass by ties", []float64{1, 2, 3}, []float64{0, 0, 0}, 1, false},
		{"nor where the first is the largest", []float64{3, 2, 1}, []float64{0, 0, 0}, 1, false},
		{"of a constant golden any will do", []float64{2, 2, 2}, []float64{1, 3, 2}, 1, true},
		{"two constant rows are alike", []float64{2, 2, 2}, []float64{1, 1, 1}, 1, true},
		{"what is above the edge must be there", []float64{9, 5, 5, 5}, []float64{1, 5, 5, 5}, 2, false},
		{"of those at the edge any will do", []float64{9, 5, 5, 4}, []float64{9, 5, 6, 4}, 2, true},
		{"all but one", []float64{1, 2, 3}, []float64{2, 1, 3}, 2, false},
		{"−Inf is a value: masked logits", []float64{-inf, 2, -inf}, []float64{-inf, 1, -inf}, 1, true},
	} {
		assert.Equal(t, row.pass, len(judge(t, compare.Criteria{compare.TopK: float64(row.k)}, of(t, row.g),
			of(t, row.a), nil)) == 0, row.reason)
	}
	long, other := make([]float64, 5000), make([]float64, 5000)
	long[4000], other[4001] = 1, 1
	assert.Empty(t, judge(t, compare.Criteria{compare.TopK: 1}, of(t, long), of(t, long), nil))
	assert.NotEmpty(t, judge(t, compare.Criteria{compare.TopK: 1}, of(t, long), of(t, other), nil))
}

func TestKL(t *testing.T) {
	ln := math.Log
	for _, row := range []struct {
		reason string
		g, a   []float64
		want   float64
	}{
		{"equal", []float64{1, 2}, []float64{1, 2}, 0},
		{"softmax does not see a constant", []float64{1, 2}, []float64{101, 102}, 0},
		{"huge logits do not overflow", []float64{1e4, 0}, []float64{1e4 + 700, 700}, 0},
		{"p = (3/4, 1/4), q = (1/2, 1/2)", []float64{ln(3), 0}, []float64{0, 0}, 0.75*ln(1.5) + 0.25*ln(0.5)},
		{"masked in both", []float64{ln(3), 0, -inf}, []float64{0, 0, -inf}, 0.75*ln(1.5) + 0.25*ln(0.5)},
		{"all masked", []float64{-inf, -inf}, []float64{-inf, -inf}, 0},
		{"a pair with NaN is left out", []float64{ln(3), 0, math.NaN()}, []float64{0, 0, 5}, 0.75*ln(1.5) + 0.25*ln(0.5)},
	} {
		v, err := compare.Criteria{compare.KL: 0}.Judge(of(t, row.g), of(t, row.a), compare.References{})
		require.NoError(t, err)
		got := 0.0
		if n := len(v.Violations); n > 0 {
			got = v.Violations[n-1].Got // after what is not finite
		}
		assert.InDelta(t, row.want, got, 1e-12, row.reason)
	}
	assert.Equal(t, []string{"kl"}, judge(t, compare.Criteria{compare.KL: 0.6}, of(t, []float64{inf, 1}),
		of(t, []float64{inf, 1}), nil), "+Inf has no softmax")
	for _, masked := range [][2][]float64{{{-inf, -inf}, {0, 0}}, {{0, 0}, {-inf, -inf}}} {
		assert.Contains(t, judge(t, compare.Criteria{compare.KL: 0.6}, of(t, masked[0]), of(t, masked[1]), nil), "kl", "one side is masked")
	}
}

func TestNoise(t *testing.T) {
	ref := of(t, []float64{1, 2, 3, 4}, 2, 2)
	g := of(t, []float32{1.001, 2, 3.001, 4}, 2, 2)
	for _, row := range []struct {
		reason string
		a      []float32
		ratio  float64
		want   []string
	}{
		{"twice the reference's own error", []float32{1, 2.002, 3, 4.002}, 2.1, nil},
		{"slightly more than is allowed", []float32{1, 2.002, 3, 4.002}, 1.9, []string{"noise", "row_noise"}},
		{"all of it in one row", []float32{1, 2.0025, 3, 4}, 1.8, []string{"row_noise"}},
		{"better than the reference", []float32{1, 2, 3, 4}, 0.5, nil},
	} {
		assert.Equal(t, row.want, judge(t, compare.Criteria{compare.Noise: row.ratio}, g, of(t, row.a, 2, 2), ref),
			row.reason)
	}
	assert.Equal(t, []string{"noise", "row_noise"}, judge(t, compare.Criteria{compare.Noise: 5}, ref, g, ref),
		"the reference is exact, the candidate is not")
	assert.Empty(t, judge(t, compare.Criteria{compare.Noise: 5}, ref, ref, ref), "both are exact")
	luckyRow := of(t, []float32{1.001, 2, 3, 4}, 2, 2)
	assert.Empty(t, judge(t, compare.Criteria{compare.Noise: 2}, luckyRow, of(t, []float32{1.001, 2, 3.001, 4}, 2, 2), ref),
		"a row that is exact by chance does not require an exact row")
	_, err := compare.Criteria{compare.Noise: 5}.Judge(of(t, []float32{2, -1, 4, 3}, 2, 2), g, compare.References{Float64: ref})
	assert.ErrorContains(t, err, "is not of the same run", "far from any golden, every candidate is near")
}

func TestOwn(t *testing.T) {
	ref := of(t, []float64{1, 2, 3, 4}, 2, 2)
	own, err := compare.Own(of(t, []float32{1.001, 2, 3, 4}, 2, 2), ref)
	require.NoError(t, err)
	assert.InDelta(t, 0.001/math.Sqrt(30), own.RelL2, 1e-7)
	for _, row := range []struct {
		golden []float32
		reason string
	}{
		{[]float32{1.02, 2, 3, 4}, "no rounding of float32"},
		{[]float32{float32(math.NaN()), 2, 3, 4}, "NaN without its match"},
		{[]float32{1, 2, 3, 4, 5, 6}, "another shape"},
	} {
		_, err := compare.Own(of(t, row.golden, len(row.golden)/2, 2), ref)
		assert.Error(t, err, row.reason)
	}
}

// The distance in ULP is the number of steps between the bit patterns of a type.
func TestULPCountsSteps(t *testing.T) {
	widths := map[tensor.DType]int{tensor.F8E4M3FN: 8, tensor.F8E4M3FNUZ: 8, tensor.F8E5M2: 8, tensor.F8E5M2FNUZ: 8,
		tensor.F8E8M0FNU: 8,
		tensor.F16:       16, tensor.BF16: 16, tensor.F32: 32, tensor.F64: 64}
	ulp := func(d tensor.DType, g, a uint64) (compare.ULPs, bool) {
		one := func(bits uint64) *tensor.Tensor {
			return fromBytes(t, d, []int{1}, binary.LittleEndian.AppendUint64(nil, bits)[:d.Size()])
		}
		u := explain(t, one(g), one(a), compare.Tolerance{}).ULP
		return u, u.MaxIndex == 0
	}
	for d, width := range widths {
		sign := uint64(1) << (width - 1)
		if d == tensor.F8E8M0FNU {
			sign = 0
		}
		for _, bits := range []uint64{0, 1, 2, 3, 6, 7, 8, 15, 16, 17, 60, 100, 119, sign/2 - 1, sign / 2,
			sign/2 + sign/8} {
			for _, steps := range []uint64{0, 1, 2, 5} {
				if got, ok := ulp(d, bits, bits+steps); ok {
					assert.Equal(t, float64(steps), got.Max, "%s: %#x to %#x", d, bits, bits+steps)
				}
				if bits >= 1 && sign > 0 && !(bits == sign/2 && steps > 0) {
					if got, ok := ulp(d, bits|sign, steps); ok {
						assert.Equal(t, float64(bits&^sign)+float64(steps), got.Max, "%s: %#x to %#x",
							d, bits|sign, steps)
					}
				}
			}
		}
	}
	for _, row := range []struct {
		reason string
		g      float64
		a      float32
		want   float64
	}{
		{"the golden is rounded to the type of the candidate first", 1 + 1e-9, 1, 0},
		{"ties go to even", 1 + 0x1p-24, 1, 0},
		{"−0 is 0", math.Copysign(0, -1), 0, 0},
		{"what rounds to infinity is one step above the largest", 1e300, math.MaxFloat32, 1},
		{"what vanishes is 0", 1e-300, 0, 0},
	} {
		d := explain(t, of(t, []float64{row.g}), of(t, []float32{row.a}), compare.Tolerance{})
		assert.Equal(t, row.want, d.ULP.Max, row.reason)
	}
}

func TestWithinSaysHowMany(t *testing.T) {
	v, err := compare.Criteria{compare.Atol: 0.5, compare.Rtol: 0}.Judge(of(t, []float64{1, 2, 3, 4}), of(t, []float64{1, 2.5, 3, 5}), compare.References{})
	require.NoError(t, err)
	require.Len(t, v.Violations, 1)
	assert.Contains(t, fmt.Sprint(v.Violations[0]), "1 of 4 elements (25 %) are not within atol 0.5 + rtol 0·|golden|, the first is element 3")
}

func TestCoarser(t *testing.T) {
	for _, c := range []struct {
		g, a, want tensor.DType
		reason     string
	}{
		{tensor.F32, tensor.BF16, tensor.BF16, "the type with fewer bits of mantissa"},
		{tensor.F16, tensor.BF16, tensor.BF16, "also of two types of one size"},
		{tensor.F32, tensor.F32, tensor.F32, "one type"},
		{tensor.I64, tensor.F32, tensor.I64, "the integers of two kinds, which are exact"},
		{tensor.Bool, tensor.BF16, tensor.Bool, "whatever the precision of the floats"},
		{tensor.I64, tensor.I32, tensor.I64, "the wider of two integers"},
	} {
		assert.Equal(t, c.want, compare.Coarser(c.g, c.a), c.reason)
		assert.Equal(t, c.want, compare.Coarser(c.a, c.g), "turned: "+c.reason)
	}
}
