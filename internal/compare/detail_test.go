package compare_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

func explain(t *testing.T, g, a *tensor.Tensor, tol compare.Tolerance) compare.Detail {
	d, err := compare.Explain(g, a, tol)
	require.NoError(t, err)
	return d
}

func TestHistogram(t *testing.T) {
	a := []float64{0, 1, 9.99, 10, 1000, 0.001, math.Nextafter(0.001, 0), nan}
	d := explain(t, of(t, make([]float64, 8)), of(t, a), compare.Tolerance{})
	assert.Equal(t, 1, d.Equal)
	assert.Equal(t, -4, d.Exponent)
	assert.Equal(t, []int{1, 1, 0, 0, 2, 1, 0, 1}, d.Decades)

	// Powers of ten and their lower neighbours fall into the right decades.
	for e := -307; e <= 308; e++ {
		p := math.Pow10(e)
		d := explain(t, of(t, []float64{0, 0}), of(t, []float64{p, math.Nextafter(p, 0)}), compare.Tolerance{})
		assert.Equal(t, e-1, d.Exponent)
		assert.Equal(t, []int{1, 1}, d.Decades)
	}
}

// The pair passes with the smallest tolerances, and fails one step below them.
func TestSmallestTolerances(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for try := range 300 {
		n := 1 + rnd.IntN(50)
		g, a := make([]float64, n), make([]float64, n)
		for i := range g {
			g[i] = rnd.NormFloat64() * math.Pow(10, 6*rnd.Float64()-3)
			a[i] = g[i] + rnd.NormFloat64()*math.Pow(10, 6*rnd.Float64()-6)
		}
		tol := compare.Tolerance{Atol: rnd.Float64() * 1e-3, Rtol: rnd.Float64() * 1e-3}
		if try%3 == 0 {
			tol.Atol = 0
		}
		gt, at := of(t, g), of(t, a)
		d := explain(t, gt, at, tol)
		mismatches := func(x compare.Tolerance) int { return tensors(t, gt, at, x).Mismatches }
		require.Zero(t, mismatches(compare.Tolerance{Atol: d.SmallestAtol, Rtol: tol.Rtol}))
		require.Zero(t, mismatches(compare.Tolerance{Atol: tol.Atol, Rtol: d.SmallestRtol}))
		if d.SmallestAtol > 0 {
			require.NotZero(t, mismatches(compare.Tolerance{Atol: d.SmallestAtol * (1 - 1e-9), Rtol: tol.Rtol}))
		}
		if d.SmallestRtol > 0 {
			require.NotZero(t, mismatches(compare.Tolerance{Atol: tol.Atol, Rtol: d.SmallestRtol * (1 - 1e-9)}))
		}
	}
	for _, row := range []struct {
		reason     string
		g, a       []float64
		tol        compare.Tolerance
		atol, rtol float64
	}{
		{"equal: nothing is needed", []float64{1, 2}, []float64{1, 2}, compare.Tolerance{}, 0, 0},
		{"no rtol helps where the golden is zero", []float64{0, 2}, []float64{0.5, 2}, compare.Tolerance{}, 0.5, inf},
		{"what atol covers needs no rtol", []float64{0, 2}, []float64{0.5, 3}, compare.Tolerance{Atol: 0.5}, 1, 0.25},
		{"1 + 2^-53 rounds down to 1: the least sum in float64 needs one step more",
			[]float64{0.5}, []float64{1.5 + 0x1p-52}, compare.Tolerance{Rtol: 0x1p-52},
			1 + 0x1p-52, 2 * (1 + 0x1p-52)},
		{"nothing helps against NaN", []float64{1}, []float64{nan}, compare.Tolerance{}, inf, inf},
		{"an infinity that matches needs nothing", []float64{inf, 1}, []float64{inf, 2}, compare.Tolerance{}, 1, 1},
	} {
		d := explain(t, of(t, row.g), of(t, row.a), row.tol)
		assert.Equal(t, []float64{row.atol, row.rtol}, []float64{d.SmallestAtol, d.SmallestRtol}, row.reason)
	}
	ints := explain(t, of(t, []int32{1}), of(t, []int32{2}), compare.Tolerance{})
	assert.Equal(t, inf, ints.SmallestAtol, "no tolerance applies to integers")
}

func TestRowsAndColumns(t *testing.T) {
	const rows, columns = 8, 70
	g, a := make([]float64, rows*columns), make([]float64, rows*columns)
	for i := range g {
		g[i], a[i] = 1, 1
	}
	for c := range columns {
		a[3*columns+c] = -1 // the row is negated
	}
	a[5*columns+7] = 3 // one element is off
	a[6*columns+9] = nan
	d := explain(t, of(t, g, rows, columns), of(t, a, rows, columns), compare.Tolerance{})
	require.Len(t, d.Rows, rows)
	assert.Equal(t, compare.Line{BadNonFinite: 1}, d.Rows[6], "the NaN is left out of the metrics")
	assert.Equal(t, compare.Line{RelL2: 2}, d.Rows[3])
	assert.Zero(t, d.Rows[0])
	assert.InEpsilon(t, 2/math.Sqrt(columns), d.Rows[5].RelL2, 1e-12)
	require.Len(t, d.Columns, columns)
	assert.Equal(t, 1, d.Columns[9].BadNonFinite)
	assert.InEpsilon(t, 1, d.Columns[7].RelL2, 1e-12, "√(2²+2²)/√8")
	assert.Equal(t, "rows 3, 5–6", d.BadRows.Text("row"))
	assert.Equal(t, "all 70 columns", d.BadColumns.Text("column"))
}

// Explain finds the same worst row as Tensors.
func TestWorstLineIsTheWorstRow(t *testing.T) {
	for _, shape := range [][]int{{200, 1}, {200, 30}, {200, 64}, {1, 500}, {3, compare.ChunkLen + 3}} {
		g, a := pairOf(t, tensor.BF16, shape...)
		r := tensors(t, g, a, compare.Tolerance{})
		d := explain(t, g, a, compare.Tolerance{})
		assert.Equal(t, r.Mismatches, d.Mismatches)
		worst := slices.MaxFunc(d.Rows, func(x, y compare.Line) int { return cmp.Compare(x.RelL2, y.RelL2) })
		assert.InEpsilon(t, r.WorstRow.RelL2, worst.RelL2, 10*precision(g, a))
		assert.Equal(t, worst, d.Rows[r.WorstRow.Index])
		assert.Equal(t, shape[0] == 1, len(d.Columns) == 0)
	}
}

// Metrics of extreme float64 values are neither NaN nor lost.
func TestExplainExtremes(t *testing.T) {
	for _, scale := range []float64{1e300, 1e-300, 1} {
		g := of(t, []float64{3 * scale, 4 * scale, 3 * scale, 4 * scale}, 2, 2)
		a := of(t, []float64{3 * scale, 4 * scale, 4 * scale, 3 * scale}, 2, 2)
		d := explain(t, g, a, compare.Tolerance{})
		require.Len(t, d.Rows, 2)
		assert.InEpsilon(t, math.Sqrt2/5, d.Rows[1].RelL2, 1e-12)
		v, err := compare.Criteria{compare.Cosine: 0.97, compare.Noise: 0.5}.Judge(g, a, compare.References{Float64: g})
		require.NoError(t, err)
		require.Len(t, v.Violations, 3)
		assert.Equal(t, "row_cosine", v.Violations[0].Criterion)
		assert.InEpsilon(t, 24./25, v.Violations[0].Got, 1e-12)
	}
	vanishes := tensors(t, of(t, []float64{1e-170}), of(t, []float64{1e100}), compare.Tolerance{})
	assert.InEpsilon(t, 1e270, vanishes.RelL2, 1e-9, "the golden's square is 0")
}

func TestPlaces(t *testing.T) {
	span := func(from, to int) []int {
		var s []int
		for i := from; i <= to; i++ {
			s = append(s, i)
		}
		return s
	}
	join := func(parts ...[]int) []int { return slices.Concat(parts...) }
	for _, row := range []struct {
		reason string
		n      int
		bad    []int
		want   string
	}{
		{"none", 8, nil, "no row"},
		{"one", 8, []int{3}, "row 3"},
		{"the only one", 1, []int{0}, "row 0"},
		{"all", 8, span(0, 7), "all 8 rows"},
		{"both", 2, span(0, 1), "all 2 rows"},
		{"the end", 16, span(8, 15), "rows 8–15"},
		{"two runs are listed", 20, []int{0, 4}, "rows 0, 4"},
		{"every fourth", 64, []int{2, 6, 10, 14, 18, 22}, "every 4th row, 2–22"},
		{"every second", 6, []int{1, 3, 5}, "every 2nd row, 1–5"},
		{"half of every head", 128, join(span(16, 31), span(48, 63), span(80, 95), span(112, 127)),
			"rows 16–31 of every 32, up to 127"},
		{"the last repetition is cut short",
			35, join(span(0, 3), span(8, 11), span(16, 19), span(24, 27), span(32, 34)),
			"rows 0–3 of every 8, up to 34"},
		{"with a shorter run in the middle there is no repetition", 30, join(span(0, 3), span(8, 10), span(16, 19)),
			"rows 0–3, 8–10, 16–19"},
		{"with a shorter run before the end there is no repetition", 30, join(span(0, 3), span(8, 11), span(16, 18)),
			"rows 0–3, 8–11, 16–18"},
		{"many without order", 100, []int{0, 2, 5, 9, 14, 20, 27, 35, 44, 54},
			"rows 0, 2, 5, 9, 14, 20, 27, 35 and 2 more"},
		{"more than a word of 64 bits", 200, span(60, 140), "rows 60–140"},
		{"the first number beyond a word", 65, []int{64}, "row 64"},
		{"every third", 9, []int{0, 3, 6}, "every 3rd row, 0–6"},
		{"every eleventh", 40, []int{0, 11, 22, 33}, "every 11th row, 0–33"},
		{"every 21st", 70, []int{1, 22, 43, 64}, "every 21st row, 1–64"},
		{"every 112th", 400, []int{0, 112, 224, 336}, "every 112th row, 0–336"},
	} {
		in := make([]bool, row.n)
		for _, i := range row.bad {
			in[i] = true
		}
		p := compare.PlacesOf(in)
		assert.Equal(t, row.want, p.Text("row"), row.reason)
		assert.Equal(t, []int{len(row.bad), row.n}, []int{p.Count, p.Total}, row.reason)
	}
	assert.Equal(t, "no row", compare.PlacesOf(nil).Text("row"))
}

// The runs that are listed are the set, up to the last of them.
func TestSpans(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		period := 1 + rnd.IntN(9)
		width, phase := 1+rnd.IntN(period), rnd.IntN(9)
		in := make([]bool, 1+rnd.IntN(80))
		for i := range in {
			in[i] = i >= phase && (i-phase)%period < width
		}
		for range rnd.IntN(3) {
			i := rnd.IntN(len(in))
			in[i] = !in[i]
		}
		p := compare.PlacesOf(in)
		out, count, rest := make([]bool, len(in)), 0, len(in)
		for _, s := range p.Spans {
			for i := s.First; i <= s.Last; i++ {
				if out[i] = s.Period == 0 || (i-s.First)%s.Period < s.Width; out[i] {
					count++
				}
			}
			if p.More > 0 {
				rest = s.Last + 1
			}
		}
		require.Equal(t, in[:rest], out[:rest], "%v", p)
		require.Equal(t, p.Count-p.More, count, "%v", p)
	}
}
