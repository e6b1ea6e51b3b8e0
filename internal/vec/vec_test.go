package vec_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

func TestRelative(t *testing.T) {
	for _, tt := range []struct {
		reason string
		a, b   []float64
		want   float64
	}{
		{"a tenth of the norm", []float64{3.3, 4.4}, []float64{3, 4}, 0.1},
		{"zeros are equal", []float64{0, 0}, []float64{0, 0}, 0},
		{"of zeros anything is far", []float64{1}, []float64{0}, math.Inf(1)},
		{"NaN", []float64{math.NaN()}, []float64{1}, math.Inf(1)},
		{"other lengths", []float64{1, 2}, []float64{1}, math.Inf(1)},
		{"nothing", nil, nil, math.Inf(1)},
	} {
		got := vec.Relative(tt.a, tt.b)
		if math.IsInf(tt.want, 1) {
			assert.True(t, math.IsInf(got, 1), tt.reason)
			continue
		}
		assert.InDelta(t, tt.want, got, 1e-12, tt.reason)
	}
}

func TestNarrow(t *testing.T) {
	for _, tt := range []struct {
		reason string
		of     string
		x      float64
		want   float64
	}{
		{"ties to even", "bfloat16", 1 + 1.0/256, 1},
		{"the next one up", "bfloat16", 1 + 3.0/256, 1 + 4.0/256},
		{"a subnormal number", "float16", 1.5 * math.Ldexp(1, -24), 2 * math.Ldexp(1, -24)},
		{"float8 saturates", "float8_e4m3", 1000, 448},
	} {
		for _, n := range vec.Narrows {
			if n.Name == tt.of {
				assert.Equal(t, tt.want, n.Round(tt.x), tt.reason)
			}
		}
	}
}

func TestPermutations(t *testing.T) {
	at := vec.Transposition([]int{2, 3}, 0, 1)
	var order []int
	for i := range 6 {
		order = append(order, at(i))
	}
	assert.Equal(t, []int{0, 3, 1, 4, 2, 5}, order)
	assert.Equal(t, 3, vec.Runs([]int{2, 3, 0, 1, 4}))
	for size, from := range map[int][]int{1: {1, 0, 3, 2}, 2: {2, 3, 4, 5, 0, 1}, 3: {3, 4, 5, 0, 1, 2}, 4: {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}} {
		assert.Equal(t, size, vec.BlockSize(from), from)
	}
	assert.Equal(t, []float64{2, 1, 4, 3}, vec.Select([]float64{1, 2, 3, 4}, 2, []int{1, 0}))
}

func TestLeastSquares(t *testing.T) {
	f := vec.LeastSquares([][]float64{{1, 0, 1}, {0, 1, 1}}, []float64{2, 3, 5})
	assert.InDeltaSlice(t, []float64{2, 3}, f, 1e-12)
	assert.Nil(t, vec.LeastSquares([][]float64{{1, 1}, {1, 1}}, []float64{1, 1}), "columns that are one tell nothing")
	assert.Nil(t, vec.LeastSquares(nil, nil), "no columns")
	assert.Nil(t, vec.LeastSquares([][]float64{{1}, {2}}, []float64{1}), "fewer rows than columns")
}

// Every number of a type is kept, and all between two neighbours become the nearer one.
func TestNarrowsAreTheirTypes(t *testing.T) {
	last := map[string]float64{}
	for name, all := range map[string][]float32{"float16": smallfloat.F16()[:0x7c00], "float8_e4m3": smallfloat.F8().E4M3FN[:0x7f],
		"float8_e5m2": smallfloat.F8().E5M2[:0x7c]} {
		i := slices.IndexFunc(vec.Narrows, func(n vec.Narrow) bool { return n.Name == name })
		n := vec.Narrows[i]
		last[name] = float64(all[len(all)-1])
		assert.Equal(t, last[name], n.Limit, name)
		assert.Equal(t, n.Saturate, n.Round(1e6) == n.Limit, "%s: larger numbers", name)
		for i, v := range all[1:] {
			low, high := float64(all[i]), float64(v)
			require.True(t, n.Holds(-high), "%s %v", name, high)
			require.Equal(t, [2]float64{low, high}, [2]float64{n.Round(0.6*low + 0.4*high), n.Round(0.4*low + 0.6*high)}, name)
		}
	}
	for _, o := range vec.Overflowing {
		if want, ok := last[o.Name]; ok {
			assert.Equal(t, want, o.Limit, o.Name)
		}
	}
	narrower := func(d tensor.DType) (names []string) {
		for _, n := range vec.NarrowerThan(d) {
			names = append(names, n.Name)
		}
		return names
	}
	assert.Equal(t, []string{"float8_e4m3", "float8_e5m2"}, narrower(tensor.BF16), "clearly fewer bits")
	assert.Len(t, narrower(tensor.F32), len(vec.Narrows))
}

func TestFollowsValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, smooth, noise, both := make([]float64, 8000), make([]float64, 8000), make([]float64, 8000), make([]float64, 8000)
	for i := range x {
		x[i], noise[i] = rng.NormFloat64(), rng.NormFloat64()
		smooth[i] = math.Sin(x[i]) * 1.5
		both[i] = smooth[i] + noise[i]
	}
	inf := slices.Clone(smooth)
	inf[7] = math.Inf(1)
	for _, c := range []struct {
		e         []float64
		n         int
		low, high float64
		reason    string
	}{
		{smooth, 8000, 0.99, 1, "the value tells the error"},
		{noise, 8000, 0, 0.06, "it does not"},
		{both, 8000, 0.4, 0.6, "half of it"},
		{inf, 8000, 0.99, 1, "an infinity is left out"},
		{smooth, 64, 0.5, 1, "few elements"},
		{smooth, 63, 0, 0, "too few"},
		{make([]float64, 8000), 8000, 0, 0, "no error"},
	} {
		got := vec.FollowsValue(x[:c.n], c.e[:c.n])
		assert.True(t, c.low <= got && got <= c.high, "%s: %v", c.reason, got)
	}
}

func TestRows(t *testing.T) {
	x, err := tensor.Of([]float32{0, 1, 2, 3, 4, 5, 6, 7}, 4, 2)
	require.NoError(t, err)
	assert.Equal(t, []float64{4, 5, 6, 7, 0, 1}, vec.Read(x, 2, []int{2, 3, 0}))
	assert.Equal(t, []float64{0, 1, 2, 3, 4, 5, 6, 7}, vec.ReadAll(x))
	assert.Nil(t, vec.Read(x, 1<<26, []int{0}), "too many")
	assert.Equal(t, []int{0, 3, 6, 9}, vec.Spread(10, 4))
	assert.Equal(t, []int{0, 1, 2}, vec.Spread(3, 5))
	inf := math.Inf(1)
	assert.InDelta(t, 2.0, vec.Project([]float64{1, 2, inf}, []float64{2, 4, 1}), 1e-12)
	assert.InDelta(t, -0.5, vec.Project([]float64{1, 1}, []float64{0, -1}), 1e-12)
	assert.Zero(t, vec.Project([]float64{0}, []float64{1}))
	assert.InDelta(t, math.Sqrt(12.5), vec.RootMeanSquare([]float64{3, 4}), 1e-12)
	assert.Equal(t, 3.0, vec.MaxAbs([]float64{2, -3, inf, math.NaN()}))
	assert.Equal(t, []float64{2, -1}, vec.Minus(vec.Scaled([]float64{1, 1}, 3), []float64{1, 4}))
	assert.Equal(t, 2, vec.Count([]float64{1, inf, 2}, vec.IsFinite))
	assert.False(t, vec.All([]float64{1, inf, 2}, vec.IsFinite))
}
