package structure_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

// at is an element of the golden.
type at = func(i, k int) float64

// mapped is a golden of random values, and the candidate whose element in row i and column k is f.
func mapped(t *testing.T, rows, width int, f func(g at, i, k int) float64) (golden, actual *tensor.Tensor) {
	t.Helper()
	g, a := pair(5, rows*width)
	element := func(i, k int) float64 { return g[i*width+k] }
	for i := range rows {
		for k := range width {
			noise := a[i*width+k] / element(i, k)
			a[i*width+k] = f(element, i, k) * noise
		}
	}
	golden, err := tensor.Of(g, rows, width)
	require.NoError(t, err)
	actual, err = tensor.Of(a, rows, width)
	require.NoError(t, err)
	return golden, actual
}

// halves is where column k comes from if the halves of heads of d are interleaved.
func halves(k, d int) int { return k/d*d + k%2*(d/2) + k%d/2 }

func times(by float64) func(at, int, int) float64 {
	return func(g at, i, k int) float64 { return by * g(i, k) }
}

func numbered(g at, i, k int) float64 { return g(i, k) * float64(k+1) } // a factor for each column

func TestRewritten(t *testing.T) {
	columns := func(n int) func(at, int, int) float64 { return func(g at, i, k int) float64 { return g(i, n-1-k) } }
	rows := func(n int) func(at, int, int) float64 { return func(g at, i, k int) float64 { return g(n-1-i, k) } }
	heads := func(d int) func(at, int, int) float64 {
		return func(g at, i, k int) float64 { return g(i, halves(k, d)) }
	}
	for _, c := range []struct {
		rows, width int
		f           func(g at, i, k int) float64
		kind        structure.MapKind
		text        string
		reason      string
	}{
		{8, 8, times(1.0 / 8), structure.MapFactor, "multiplied by 0.125", "1/√64"},
		{2, 16, times(-1), structure.MapFactor, "multiplied by -1", "of 32 elements"},
		{2, 15, times(-1), structure.MapNone, "", "30 are too few"},
		{8, 8, times(0), structure.MapNone, "", "zeros: nothing brings the numbers back"},
		{8, 16, heads(8), structure.MapInterleaved, "head of 8 are", "two heads"},
		{8, 6, heads(6), structure.MapInterleaved, "head of 6 are", "one head"},
		{8, 6, numbered, structure.MapColumns, "from 1 to 6", "a norm's weight"},
		{3, 12, numbered, structure.MapColumns, "from 1 to 12", "of three rows"},
		{2, 20, numbered, structure.MapNone, "", "two rows fit anything"},
		{8, 8, func(g at, i, k int) float64 { return g(i, k) * float64(k) }, structure.MapNone, "", "a column is lost"},
		{8, 8, columns(8), structure.MapOrder, "columns are in another order: column 0 holds column 7", "reversed"},
		{3, 12, columns(12), structure.MapOrder, "column 0 holds column 11", "three rows tell"},
		{2, 12, columns(12), structure.MapNone, "", "two rows do not"},
		{8, 8, rows(8), structure.MapOrder, "rows are in another order: row 0 holds row 7", "reversed"},
		{8, 3, rows(8), structure.MapOrder, "row 0 holds row 7", "three columns tell"},
		{8, 2, rows(8), structure.MapNone, "", "two columns do not"},
		{2, 32, rows(2), structure.MapOrder, "row 0 holds row 1", "two rows change places"},
		{8, 8, func(g at, i, k int) float64 { return g(i, k) * (1 + 0.1*math.Sin(float64(8*i+k))) }, structure.MapNone, "", "noise"},
		{8, 8, times(1), structure.MapNone, "", "they agree"},
		{8, 8, func(g at, i, k int) float64 { return g(i, k) * (2 + 1e-3*float64(k%2)*math.Sin(float64(i))) }, structure.MapNone, "", "near a factor is none"},
	} {
		golden, actual := mapped(t, c.rows, c.width, c.f)
		m := structure.Rewritten(golden, actual, floor)
		assert.Equal(t, c.kind, m.Kind, c.reason)
		assert.Contains(t, m.Text, c.text, c.reason)
		assert.Equal(t, c.kind == structure.MapFactor, m.Factor != 0, c.reason)
	}
	big := make([]float32, 2049*2048) // more than is looked at
	for i := range big {
		big[i] = float32(i*i%10007) - 5000
	}
	turned, tripled := slices.Concat(big[2048:4096], big[:2048], big[4096:]), make([]float32, len(big))
	for i, v := range big {
		tripled[i] = 3 * v
	}
	of := func(v []float32) *tensor.Tensor {
		x, err := tensor.Of(v, 2049, 2048)
		require.NoError(t, err)
		return x
	}
	assert.Equal(t, structure.MapFactor, structure.Rewritten(of(big), of(tripled), floor).Kind, "some rows tell")
	assert.Equal(t, structure.MapNone, structure.Rewritten(of(big), of(turned), floor).Kind, "some rows do not tell the order of all")
	golden, doubled := mapped(t, 8, 8, times(2))
	flat, err := doubled.Reshape(64)
	require.NoError(t, err)
	assert.Zero(t, structure.Rewritten(golden, flat, floor), "another shape")
	_, broken := mapped(t, 8, 8, func(g at, i, k int) float64 {
		if i+k == 0 {
			return math.NaN()
		}
		return 2 * g(i, k)
	})
	assert.Zero(t, structure.Rewritten(golden, broken, floor), "a NaN")
	ints, err := tensor.Of(slices.Repeat([]int64{1, 2, 3, 4}, 16), 8, 8)
	require.NoError(t, err)
	assert.Zero(t, structure.Rewritten(ints, ints, floor), "integers")
}
