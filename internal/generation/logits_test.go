package generation_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/tensor"
)

func matrix(t require.TestingT, rows ...[]float64) *tensor.Tensor {
	var all []float64
	for _, r := range rows {
		all = append(all, r...)
	}
	m, err := tensor.Of(all, len(rows), len(rows[0]))
	require.NoError(t, err)
	return m
}

// One look at a row says what the comparison of its logits says.
func TestPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	for range 3000 {
		n, d := 2+r.IntN(200), []tensor.DType{tensor.F32, tensor.BF16}[r.IntN(2)]
		golden, size, shift := make([]float64, n), pick(0, 1e-6, 1e-2, 1), pick(0, 3)
		for i := range golden {
			golden[i] = 8*r.Float64() - 4
		}
		actual := with(golden, func(i int, v float64) float64 { return v + shift + size*math.Sin(float64(i)*1.7) })
		switch i, j := r.IntN(n), r.IntN(n); r.IntN(4) {
		case 0:
			actual[i], actual[j] = actual[j], actual[i]
		case 1:
			actual[i] = pick(math.NaN(), math.Inf(-1), math.Inf(1), 9)
		case 2:
			actual = make([]float64, n)
		}
		row, own := generation.NewRow(golden), generation.NewRow(actual)
		want := generation.Compare(row, own, row.Top[0].Token, -1, d)
		both := generation.Positions(matrix(t, golden, actual), matrix(t, actual, actual), d)
		got := both[0]
		require.Equal(t, []any{want.Choice, want.Reference, want.Candidate, want.Outliers}, []any{got.Choice, got.Reference, got.Candidate, got.Outliers})
		if own.Bad() > 0 || own.Constant() {
			require.Nil(t, both[1], "it decides nothing")
		} else {
			require.Equal(t, generation.Same, both[1].Choice, "a row beside itself")
		}
	}
}

func TestAhead(t *testing.T) {
	golden := logits(300, map[int]float64{10: 8, 20: 7.98, 30: 5})
	as := func(token int, v float64) []float64 {
		return with(golden, exchanged(logits(300, map[int]float64{token: v}), token, token))
	}
	for _, tt := range []struct {
		actual       []float64
		d            tensor.DType
		says, reason string
	}{
		{as(20, 8.01), tensor.BF16, "a tie", "near"},
		{as(30, 9), tensor.F32, "times the noise", "far"},
		{as(30, math.NaN()), tensor.F32, "the candidate's logits are not finite", "no number"},
	} {
		p := generation.Positions(matrix(t, golden), matrix(t, tt.actual), tt.d)
		assert.Contains(t, p[0].Ahead(), tt.says, tt.reason)
	}
	bad := logits(300, map[int]float64{3: math.NaN()})
	level := generation.Positions(matrix(t, make([]float64, 300), bad, logits(300, nil)), matrix(t, golden, golden, make([]float64, 300)), tensor.F32)
	assert.Equal(t, []*generation.Position{nil, nil}, level[:2], "a golden that decides nothing")
	assert.Equal(t, generation.Diverged, level[2].Choice, "a candidate that decides nothing")
}

func TestLastAndSurest(t *testing.T) {
	half := []float64{0, math.Log(2), math.Inf(-1), 0} // 1/4, 1/2, 0, 1/4
	for _, tt := range []struct {
		rows   [][]float64
		token  int
		last   float64
		surest float64
		err    string
		reason string
	}{
		{[][]float64{{1, 1, 1, 1}, half}, 1, 0.5, 0.5, "", "the last row answers"},
		{[][]float64{half, {1, 1, 1, 1}}, 0, 0, 0.5, "are all 1: none is the largest", "level"},
		{[][]float64{half, {0, 1, math.NaN(), 0}}, 0, 0, 1, "are not finite", "NaN"},
		{[][]float64{half, {math.Inf(-1), math.Inf(-1), math.Inf(-1), math.Inf(-1)}}, 0, 0, 1, "are not finite", "nothing is left"},
	} {
		m := matrix(t, tt.rows...)
		assert.InDelta(t, tt.surest, generation.Surest(m), 1e-12, tt.reason)
		token, p, err := generation.Last(m)
		if tt.err != "" {
			assert.EqualError(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tt.token, token, tt.reason)
		assert.InDelta(t, tt.last, p, 1e-12, tt.reason)
	}
}
