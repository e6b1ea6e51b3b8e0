package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// Noise of the candidate like that of the reference never fails, whatever the widths and however
// few elements there are; an error of another size does wherever the elements are enough to tell.
func TestCostOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	const eps = 1.0 / 256
	for _, shape := range [][2]int{{1, 1}, {1, 2}, {3, 1}, {14, 1}, {500, 1}, {14, 2}, {300, 3}, {1, 8}, {40, 12},
		{7, 64}, {200, 64}, {20, 1000}, {2, 4096}} {
		for _, size := range []float64{0.3, 3, 10} { // of the noise, in roundings
			rows, w := shape[0], shape[1]
			if rows*w < 8 && size > 1 {
				continue // a few numbers may all be small by chance, and no part of them is large enough
			}
			failed, found := 0, 0
			const runs = 60
			for range runs {
				g, r, a, bad := make([]float64, rows*w), make([]float64, rows*w), make([]float64, rows*w), make([]float64, rows*w)
				worst := rng.IntN(rows)
				for i := range g {
					g[i] = rng.NormFloat64()
					noise := func() float64 { return size * eps * rng.NormFloat64() }
					r[i], a[i] = g[i]+noise(), g[i]+noise()
					if bad[i] = a[i]; i/w == worst {
						bad[i] += 12 * max(size, 1) * eps * rng.NormFloat64()
					}
				}
				refs := compare.References{Encoded: of(t, r, rows, w), Encoding: tensor.BF16}
				judge := func(x []float64) bool {
					v, err := compare.Criteria{compare.Cost: 3}.Judge(of(t, g, rows, w), of(t, x, rows, w), refs)
					require.NoError(t, err)
					return v.Pass
				}
				if !judge(a) {
					failed++
				}
				if !judge(bad) {
					found++
				}
			}
			what := fmt.Sprintf("%d rows of %d, noise of %g roundings", rows, w, size)
			assert.Zero(t, failed, what)
			if w >= 64 && size < 10 {
				assert.Equal(t, runs, found, what)
			}
		}
	}
}

// wide has rows of 64 equal elements each: no allowance for few.
func wide(t *testing.T, rows ...float64) *tensor.Tensor {
	var out []float64
	for _, x := range rows {
		out = append(out, slices.Repeat([]float64{x}, 64)...)
	}
	return of(t, out, len(rows), 64)
}

func TestCost(t *testing.T) {
	g := []float64{1, 1, 1, 1}
	plus := func(x ...float64) []float64 {
		out := make([]float64, len(x))
		for i := range x {
			out[i] = g[i] + x[i]
		}
		return out
	}
	const eps = 1.0 / 256
	for _, tt := range []struct {
		reason string
		r, a   []float64
		pass   bool
	}{
		{"three roundings, where the reference has none", plus(0, 0, 0, 0), plus(2.9*eps, 0, 0, 0), true},
		{"more than three", plus(0, 0, 0, 0), plus(3.1*eps, 0, 0, 0), false},
		{"the reference's own row is as far off", plus(20*eps, 0, 0, 0), plus(59*eps, 0, 0, 0), true},
		{"another row than the reference's", plus(20*eps, 0, 0, 0), plus(0, 31*eps, 0, 0), false},
		{"the other rows say what a row costs", plus(4*eps, -4*eps, 4*eps, 0), plus(0, 0, 0, 10*eps), true},
		{"never above what roundings add up to", plus(100*eps, 100*eps, 100*eps, 100*eps), plus(0.49, 0.49, 0.49, 0.49), false},
		{"a row that overflows in the encoding is not judged", plus(math.Inf(1), 0, 0, 0), plus(9, 0, 0, 0), true},
		{"the others are", plus(math.NaN(), 0, 0, 0), plus(0, 0.5, 0, 0), false},
	} {
		v, err := compare.Criteria{compare.Cost: 3}.Judge(wide(t, g...), wide(t, tt.a...),
			compare.References{Encoded: wide(t, tt.r...), Encoding: tensor.BF16})
		require.NoError(t, err)
		assert.Equal(t, tt.pass, v.Pass, "%s: %v", tt.reason, v.Violations)
	}
	_, err := compare.Criteria{compare.Cost: 3}.Judge(of(t, g, 4), of(t, g, 4), compare.References{})
	require.ErrorContains(t, err, "references: [float32, bfloat16]")
}

// A pass has its metrics, too, and they judge again what the tensors did.
func TestCostMetrics(t *testing.T) {
	const eps = 1.0 / 256
	g, r := wide(t, 1, 1, 1, 1), wide(t, 1+2*eps, 1+2*eps, math.Inf(1), 1+2*eps)
	refs := compare.References{Encoded: r, Encoding: tensor.BF16}
	v, err := compare.Criteria{compare.Cost: 3}.Judge(g, wide(t, 1, 1+4*eps, 5, 1+eps), refs)
	require.NoError(t, err)
	assert.True(t, v.Pass, "%v", v.Violations)
	require.NotNil(t, v.Result.Cost)
	assert.InDelta(t, 2, v.Result.Cost.Row, 1e-6)
	assert.InDelta(t, math.Sqrt(17./3)/2, v.Result.Cost.Tensor, 1e-6)
	assert.Equal(t, 1, v.Result.Cost.WorstRow)
	assert.Equal(t, 1, v.Result.Cost.LeftOut)
	for limit, pass := range map[float64]bool{3: true, 1.9: false} {
		broken, open, err := compare.Criteria{compare.Cost: limit}.Recall(v.Result, compare.Tolerance{}, false)
		require.NoError(t, err)
		assert.Empty(t, open)
		assert.Equal(t, pass, len(broken) == 0, "%v", broken)
	}

	v, err = compare.Default(tensor.BF16).Judge(g, g, refs)
	require.NoError(t, err)
	assert.Nil(t, v.Result.Cost, "no one asked")
	_, open, err := compare.Criteria{compare.Cost: 3}.Recall(v.Result, compare.Tolerance{}, false)
	require.NoError(t, err)
	assert.Equal(t, []string{"what the encoding costs the reference is not among the metrics"}, open)
}

// Where a limit is so wide that zeros pass depends on the type.
func TestCostOfZeros(t *testing.T) {
	x := make([]float64, 4096)
	for i := range x {
		x[i] = math.Sin(float64(i))
	}
	g, zeros, far := of(t, x, 64, 64), of(t, make([]float64, 4096), 64, 64), make([]float64, 4096)
	for i := range x {
		far[i] = 2 * x[i]
	}
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16} {
		refs := compare.References{Encoded: of(t, far, 64, 64), Encoding: d}
		limit := 3.0
		for ; ; limit *= 1.1 {
			v, err := compare.Criteria{compare.Cost: limit}.Judge(g, zeros, refs)
			if err != nil {
				assert.ErrorContains(t, err, "accepts zeros in place of the golden")
				break
			}
			require.False(t, v.Pass, "%s: zeros keep a cost of %g", d, limit)
		}
		assert.Greater(t, limit, 10.0, "what no zeros keep is no misuse")
	}
}

// A row of one forward pass is measured against the rows of all.
func TestRowNorm(t *testing.T) {
	one := func(v float64) *tensor.Tensor { return of(t, []float64{v}, 1, 1) }
	norm := func() float64 { return 1 }
	for _, tt := range []struct {
		golden, actual, encoded float64
		refs                    compare.References
		criteria                compare.Criteria
		pass                    bool
		relL2                   float64
		reason                  string
	}{
		{1e-3, 1.01e-3, 0, compare.References{}, compare.Criteria{compare.RelL2: 1e-4}, false, 1e-2, "the golden has all rows"},
		{1e-3, 1.01e-3, 0, compare.References{RowNorm: norm}, compare.Criteria{compare.RelL2: 1e-4}, true, 1e-5, "near zero by chance"},
		{1e-3, 2e-3, 0, compare.References{RowNorm: norm}, compare.Criteria{compare.RelL2: 1e-4}, false, 1e-3, "an error beside other rows, too"},
		{2, 2.1, 0, compare.References{RowNorm: norm}, compare.Criteria{compare.RelL2: 1e-4}, false, 0.05, "a row larger than others by itself"},
		{1e-3, 5e-3, 1.1e-3, compare.References{Encoding: tensor.BF16}, compare.Criteria{compare.Cost: 3}, false, 4, "what it costs of a row near zero"},
		{1e-3, 5e-3, 1.1e-3, compare.References{Encoding: tensor.BF16, RowNorm: norm}, compare.Criteria{compare.Cost: 3}, true, 4e-3, "and of the others"},
		{1e-3, 0.2, 1.1e-3, compare.References{Encoding: tensor.BF16, RowNorm: norm}, compare.Criteria{compare.Cost: 3}, false, 0.199, "too much for any"},
	} {
		if tt.refs.Encoding != 0 {
			tt.refs.Encoded = one(tt.encoded)
		}
		v, err := tt.criteria.Judge(one(tt.golden), one(tt.actual), tt.refs)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.pass, v.Pass, "%s: %+v", tt.reason, v.Violations)
		assert.InEpsilon(t, tt.relL2, v.Result.RelL2, 1e-9, tt.reason)
		assert.InEpsilon(t, tt.relL2, v.Result.WorstRow.RelL2, 1e-9, tt.reason)
	}
	long := of(t, make([]float64, 64), 1, 64)
	_, err := compare.Criteria{compare.RelL2: 1e-4}.Judge(long, long, compare.References{RowNorm: func() float64 { panic("long rows have a norm of their own") }})
	assert.NoError(t, err)
}
