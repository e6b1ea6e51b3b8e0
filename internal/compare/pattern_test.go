package compare_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

var floor = compare.Floor(tensor.F32, tensor.F32)

// pair is a golden of random values and a candidate with the noise of float32.
func pair(seed uint64, n int) (g, a []float64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	g, a = make([]float64, n), make([]float64, n)
	for i := range g {
		g[i] = rnd.NormFloat64()
		a[i] = g[i] * (1 + 3e-7*rnd.NormFloat64())
	}
	return g, a
}

func find(t *testing.T, g, a []float64, heads int, shape ...int) map[string]compare.Pattern {
	t.Helper()
	found := map[string]compare.Pattern{}
	for _, f := range compare.Patterns(of(t, g, shape...), of(t, a, shape...), floor, heads) {
		assert.Contains(t, f.Text, "wrong: ")
		found[f.Kind] = f
	}
	return found
}

func TestPlacesOfErrors(t *testing.T) {
	const rows, columns = 16, 64
	for _, c := range []struct {
		wrong    func(row, column int) bool
		heads    int
		kind     string // "" for no place at all
		from, to int
		period   int
		reason   string
	}{
		{func(r, _ int) bool { return r >= 5 }, 0, compare.RowsFrom, 5, 15, 0, "rows from 5 on"},
		{func(r, _ int) bool { return r >= 1 }, 0, compare.RowsFrom, 1, 15, 0,
			"all but the first token: under a causal mask it attends to itself only"},
		{func(r, _ int) bool { return r == 15 }, 0, "rows/one", 15, 15, 0, "the last row alone is one row"},
		{func(r, _ int) bool { return r == 3 }, 0, "rows/one", 3, 3, 0, "one token"},
		{func(r, _ int) bool { return r%4 == 1 }, 0, compare.RowsEvery, 1, 13, 4, "every fourth row"},
		{func(r, _ int) bool { return r%8 >= 6 }, 0, "rows/set", 6, 15, 0, "two runs repeat nothing yet"},
		{func(r, _ int) bool { return r < 4 }, 0, "rows/block", 0, 3, 0, "the first rows"},
		{func(r, _ int) bool { return r%5 < 2 || r == 13 }, 0, "rows/set", 0, 15, 0, "half of the rows"},
		{func(r, _ int) bool { return r != 4 && r != 9 }, 0, "", 0, 0, 0, "of most rows some are right"},
		{func(_, k int) bool { return k%3 == 0 && k != 9 }, 0, "", 0, 0, 0, "more runs than are told"},
		{func(_, k int) bool { return k >= 48 }, 0, compare.ColumnsFrom, 48, 63, 0, "columns from 48 on"},
		{func(_, k int) bool { return k == 17 }, 0, "columns/one", 17, 17, 0, "one channel"},
		{func(_, k int) bool { return k%2 == 1 }, 0, "columns/every", 1, 63, 2, "the odd columns"},
		{func(_, k int) bool { return k >= 16 && k < 32 }, 0, compare.ColumnsBlock, 16, 31, 0, "a block of columns"},
		{func(_, k int) bool { return k >= 16 && k < 32 }, 4, compare.HeadOne, 1, 1, 0,
			"the same is a head where there are four"},
		{func(r, k int) bool { return k >= 16 && k < 32 && r > 0 }, 4, compare.HeadOne, 1, 1, 0,
			"a head, but for token 0"},
		{func(_, k int) bool { return k/16 == 0 || k/16 == 3 }, 4, compare.HeadSet, 0, 3, 0,
			"the first and the last head"},
		{func(_, k int) bool { return k >= 32 }, 2, compare.HeadOne, 1, 1, 0, "the second of two heads"},
		{func(_, k int) bool { return k == 17 }, 4, "columns/one", 17, 17, 0, "one channel is no head"},
		{func(r, k int) bool { return r >= 8 && k >= 32 && k < 40 }, 0, compare.Block, 8, 15, 0, "a tile"},
		{func(_, _ int) bool { return true }, 4, "", 0, 0, 0, "all of it: no place"},
		{func(_, _ int) bool { return false }, 4, "", 0, 0, 0, "nothing"},
	} {
		g, a := pair(7, rows*columns)
		for i := range a {
			if c.wrong(i/columns, i%columns) {
				a[i] = 0.3 - a[i]
			}
		}
		found := find(t, g, a, c.heads, rows, columns)
		if c.kind == "" {
			assert.Empty(t, found, c.reason)
			continue
		}
		require.Contains(t, found, c.kind, c.reason)
		_, isBlock := found[compare.Block]
		assert.Equal(t, c.kind == compare.Block, isBlock && c.heads == 0, c.reason)
		f := found[c.kind]
		assert.Equal(t, []int{c.from, c.to, c.period}, []int{f.From, f.To, f.Period}, c.reason)
	}
}

func TestHeadAxis(t *testing.T) {
	for _, c := range []struct {
		shape  []int
		head   func(i int) int
		kind   string
		reason string
	}{
		{[]int{1, 4, 7, 16}, func(i int) int { return i / (7 * 16) % 4 }, compare.HeadOne,
			"[batch, heads, tokens, dim]"},
		{[]int{7, 4, 16}, func(i int) int { return i / 16 % 4 }, compare.HeadOne, "[tokens, heads, dim]"},
		{[]int{2, 4, 4, 16}, func(i int) int { return i / 16 % 4 }, compare.RowsEvery,
			"two axes of four: it is not known which are heads"},
	} {
		n := 1
		for _, s := range c.shape {
			n *= s
		}
		g, a := pair(3, n)
		for i := range a {
			if c.head(i) == 2 {
				a[i] = -a[i]
			}
		}
		found := find(t, g, a, 4, c.shape...)
		require.Contains(t, found, c.kind, c.reason)
		if c.kind == compare.HeadOne {
			assert.Equal(t, 2, found[c.kind].From, c.reason)
			assert.NotContains(t, found, compare.RowsEvery, "said already")
		}
	}
}

// A growing error has no edge, and a drift around the floor no place, whatever exceeds the floor by
// chance.
func TestSilence(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for try := range 200 {
		g, a := pair(uint64(try), 32*64)
		for i := range a {
			switch row := i / 64; {
			case try%2 == 0:
				a[i] += 1e-7 * math.Pow(1.5, float64(row)) * rnd.NormFloat64()
			default:
				a[i] += floor.RowRelL2 * rnd.NormFloat64()
			}
		}
		assert.Empty(t, find(t, g, a, 4, 32, 64))
	}
	g, a := pair(1, 64)
	assert.Empty(t, find(t, g, a, 0, 8, 8), "healthy")
	g, a = pair(1, 16*64)
	for row := range 16 {
		a[64*row+3] *= 1 + 5e-5
	}
	assert.Empty(t, find(t, g, a, 0, 16, 64), "a column that is above the floor, and no row")
	g, a = pair(1, 64)
	assert.Empty(t, find(t, nil, nil, 0, 0, 8), "empty")
	assert.Empty(t, compare.Patterns(nil, nil, floor, 0))
	assert.Empty(t, compare.Patterns(of(t, g, 8, 8), of(t, a, 64), floor, 0), "shapes that differ")
}

func TestNaNIsWrong(t *testing.T) {
	g, a := pair(1, 16*64)
	a[5*64+3] = math.NaN()
	found := find(t, g, a, 0, 16, 64)
	require.Contains(t, found, "rows/one")
	assert.Equal(t, 5, found["rows/one"].From)
	assert.Equal(t, 3, found["columns/one"].From)
	g[5*64+3] = math.Inf(1)
	a[5*64+3] = math.Inf(1)
	assert.Empty(t, find(t, g, a, 0, 16, 64), "an infinity matches itself")
}

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
	return of(t, g, rows, width), of(t, a, rows, width)
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
		kind        compare.MapKind
		text        string
		reason      string
	}{
		{8, 8, times(1.0 / 8), compare.MapFactor, "multiplied by 0.125", "1/√64"},
		{2, 16, times(-1), compare.MapFactor, "multiplied by -1", "of 32 elements"},
		{2, 15, times(-1), compare.MapNone, "", "30 are too few"},
		{8, 8, times(0), compare.MapNone, "", "zeros: nothing brings the numbers back"},
		{8, 16, heads(8), compare.MapInterleaved, "head of 8 are", "two heads"},
		{8, 6, heads(6), compare.MapInterleaved, "head of 6 are", "one head"},
		{8, 6, numbered, compare.MapColumns, "from 1 to 6", "a norm's weight"},
		{3, 12, numbered, compare.MapColumns, "from 1 to 12", "of three rows"},
		{2, 20, numbered, compare.MapNone, "", "two rows fit anything"},
		{8, 8, func(g at, i, k int) float64 { return g(i, k) * float64(k) }, compare.MapNone, "", "a column is lost"},
		{8, 8, columns(8), compare.MapOrder, "columns are in another order: column 0 holds column 7", "reversed"},
		{3, 12, columns(12), compare.MapOrder, "column 0 holds column 11", "three rows tell"},
		{2, 12, columns(12), compare.MapNone, "", "two rows do not"},
		{8, 8, rows(8), compare.MapOrder, "rows are in another order: row 0 holds row 7", "reversed"},
		{8, 3, rows(8), compare.MapOrder, "row 0 holds row 7", "three columns tell"},
		{8, 2, rows(8), compare.MapNone, "", "two columns do not"},
		{2, 32, rows(2), compare.MapOrder, "row 0 holds row 1", "two rows change places"},
		{8, 8, func(g at, i, k int) float64 { return g(i, k) * (1 + 0.1*math.Sin(float64(8*i+k))) }, compare.MapNone, "", "noise"},
		{8, 8, times(1), compare.MapNone, "", "they agree"},
		{8, 8, func(g at, i, k int) float64 { return g(i, k) * (2 + 1e-3*float64(k%2)*math.Sin(float64(i))) }, compare.MapNone, "", "near a factor is none"},
	} {
		golden, actual := mapped(t, c.rows, c.width, c.f)
		m := compare.Rewritten(golden, actual, floor)
		assert.Equal(t, c.kind, m.Kind, c.reason)
		assert.Contains(t, m.Text, c.text, c.reason)
		assert.Equal(t, c.kind == compare.MapFactor, m.Factor != 0, c.reason)
	}
	big := make([]float32, 2049*2048) // more than is looked at
	for i := range big {
		big[i] = float32(i*i%10007) - 5000
	}
	turned, tripled := slices.Concat(big[2048:4096], big[:2048], big[4096:]), make([]float32, len(big))
	for i, v := range big {
		tripled[i] = 3 * v
	}
	large := func(v []float32) *tensor.Tensor { return of(t, v, 2049, 2048) }
	assert.Equal(t, compare.MapFactor, compare.Rewritten(large(big), large(tripled), floor).Kind, "some rows tell")
	assert.Equal(t, compare.MapNone, compare.Rewritten(large(big), large(turned), floor).Kind, "some rows do not tell the order of all")
	few := []float64{1, 2, 4, 1, 2, 4, 1, 4, 2, 2, 1, 4, 2, 4, 1, 4, 1, 2, 4, 2, 1} // whose rows have one sum
	last := of(t, slices.Concat(few[:6], few[18:], few[6:18]), 7, 3)
	assert.Contains(t, compare.Rewritten(of(t, few, 7, 3), last, floor).Text, "row 2 holds row 6")
	zeros, factors := of(t, []float64{0, 2, 4, 0, 4, 2, 0, 1, 4}, 3, 3), of(t, []float64{0, 6, 20, 0, 12, 10, 0, 3, 20}, 3, 3)
	assert.Contains(t, compare.Rewritten(zeros, factors, floor).Text, "from 1 to 5", "a column of zeros")
	golden, doubled := mapped(t, 8, 8, times(2))
	flat, err := doubled.Reshape(64)
	require.NoError(t, err)
	assert.Zero(t, compare.Rewritten(golden, flat, floor), "another shape")
	_, broken := mapped(t, 8, 8, func(g at, i, k int) float64 {
		if i+k == 0 {
			return math.NaN()
		}
		return 2 * g(i, k)
	})
	assert.Zero(t, compare.Rewritten(golden, broken, floor), "a NaN")
	ints := of(t, slices.Repeat([]int64{1, 2, 3, 4}, 16), 8, 8)
	assert.Zero(t, compare.Rewritten(ints, ints, floor), "integers")
}
