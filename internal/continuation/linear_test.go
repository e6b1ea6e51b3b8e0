package continuation_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// stepwise is a text of n tokens behind a prompt of three, of a model of 16 words, run token by token.
func stepwise(t *testing.T, n int) *dump.Run {
	t.Helper()
	const words = 16
	ids := []int{1, 2, 3}
	var entries []dump.Entry
	for k := range n {
		rows := 1
		if k == 0 {
			rows = len(ids)
		}
		x := make([]float32, rows*words)
		for i := range x {
			x[i] = float32((i*7 + k*3) % 13)
		}
		best := words * (rows - 1)
		for i := best; i < len(x); i++ {
			if x[i] > x[best] {
				best = i
			}
		}
		out, err := tensor.Of(x, 1, rows, words)
		require.NoError(t, err)
		entries = append(entries, dump.Entry{Step: strconv.Itoa(k), Layer: "lm_head", Port: "output", Tensor: out})
		ids = append(ids, best%words)
	}
	data, err := json.Marshal([][]int{ids})
	require.NoError(t, err)
	return dump.New("x", dump.Info{TokenIDs: data, Generation: &dump.Generation{From: 3, Tokens: ids[3:]}}, "", entries)
}

// Twice as many tokens take twice the time: the time of a quadratic search would grow sixteenfold here.
func TestTimeGrowsWithTheTokens(t *testing.T) {
	took := func(n int) time.Duration {
		least := time.Hour
		for range 3 {
			start := time.Now()
			golden, err := continuation.Open(stepwise(t, n), nil)
			require.NoError(t, err)
			actual, err := continuation.Open(stepwise(t, n), golden)
			require.NoError(t, err)
			o, err := continuation.Compare(t.Context(), golden, actual, continuation.Options{NoLayers: true})
			require.NoError(t, err)
			require.Len(t, o.Positions, n)
			least = min(least, time.Since(start))
		}
		return least
	}
	few, many := took(500), took(2000)
	assert.Less(t, many, 10*few, "%s for 500 tokens, %s for 2,000", few, many)
}
