package compare_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
)

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
