package structure_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/structure"
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

func find(t *testing.T, g, a []float64, heads int, shape ...int) map[string]structure.Finding {
	t.Helper()
	tg, err := tensor.Of(g, shape...)
	require.NoError(t, err)
	ta, err := tensor.Of(a, shape...)
	require.NoError(t, err)
	found := map[string]structure.Finding{}
	for _, f := range structure.Of(tg, ta, floor, heads) {
		assert.NotEmpty(t, f.Text)
		found[f.Kind] = f
	}
	return found
}

func TestPlaces(t *testing.T) {
	const rows, columns = 16, 64
	for _, c := range []struct {
		wrong    func(row, column int) bool
		heads    int
		kind     string // "" for no place at all
		from, to int
		period   int
		reason   string
	}{
		{func(r, _ int) bool { return r >= 5 }, 0, structure.RowsFrom, 5, 15, 0, "rows from 5 on"},
		{func(r, _ int) bool { return r >= 1 }, 0, structure.RowsFrom, 1, 15, 0,
			"all but the first token: under a causal mask it attends to itself only"},
		{func(r, _ int) bool { return r == 15 }, 0, "rows/one", 15, 15, 0, "the last row alone is one row"},
		{func(r, _ int) bool { return r == 3 }, 0, "rows/one", 3, 3, 0, "one token"},
		{func(r, _ int) bool { return r%4 == 1 }, 0, structure.RowsEvery, 1, 13, 4, "every fourth row"},
		{func(r, _ int) bool { return r%8 >= 6 }, 0, "rows/set", 6, 15, 0, "two runs repeat nothing yet"},
		{func(r, _ int) bool { return r < 4 }, 0, "rows/block", 0, 3, 0, "the first rows"},
		{func(_, k int) bool { return k >= 48 }, 0, structure.ColumnsFrom, 48, 63, 0, "columns from 48 on"},
		{func(_, k int) bool { return k == 17 }, 0, "columns/one", 17, 17, 0, "one channel"},
		{func(_, k int) bool { return k%2 == 1 }, 0, "columns/every", 1, 63, 2, "the odd columns"},
		{func(_, k int) bool { return k >= 16 && k < 32 }, 0, structure.ColumnsBlock, 16, 31, 0, "a block of columns"},
		{func(_, k int) bool { return k >= 16 && k < 32 }, 4, structure.HeadOne, 1, 1, 0,
			"the same is a head where there are four"},
		{func(r, k int) bool { return k >= 16 && k < 32 && r > 0 }, 4, structure.HeadOne, 1, 1, 0,
			"a head, but for token 0"},
		{func(_, k int) bool { return k/16 == 0 || k/16 == 3 }, 4, structure.HeadSet, 0, 3, 0,
			"the first and the last head"},
		{func(_, k int) bool { return k >= 32 }, 2, structure.HeadOne, 1, 1, 0, "the second of two heads"},
		{func(_, k int) bool { return k == 17 }, 4, "columns/one", 17, 17, 0, "one channel is no head"},
		{func(r, k int) bool { return r >= 8 && k >= 32 && k < 40 }, 0, structure.Block, 8, 15, 0, "a tile"},
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
		{[]int{1, 4, 7, 16}, func(i int) int { return i / (7 * 16) % 4 }, structure.HeadOne,
			"[batch, heads, tokens, dim]"},
		{[]int{7, 4, 16}, func(i int) int { return i / 16 % 4 }, structure.HeadOne, "[tokens, heads, dim]"},
		{[]int{2, 4, 4, 16}, func(i int) int { return i / 16 % 4 }, structure.RowsEvery,
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
		if c.kind == structure.HeadOne {
			assert.Equal(t, 2, found[c.kind].From, c.reason)
			assert.NotContains(t, found, structure.RowsEvery, "said already")
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
	assert.Empty(t, find(t, nil, nil, 0, 0, 8), "empty")
	assert.Empty(t, structure.Of(nil, nil, floor, 0))
	tg, _ := tensor.Of(g, 8, 8)
	ta, _ := tensor.Of(a, 64)
	assert.Empty(t, structure.Of(tg, ta, floor, 0), "shapes that differ")
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
