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

// stepwise is a text of n tokens after a prompt of three, of a model of 16 words, run token by token.
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

// The time is in proportion to the tokens: where each was looked for in all forward passes, 4,000 took 27 s, and 8,000
// four times that.
func TestManyTokensAreQuick(t *testing.T) {
	const n = 8000
	start := time.Now()
	golden, err := continuation.Open(stepwise(t, n), nil)
	require.NoError(t, err)
	actual, err := continuation.Open(stepwise(t, n), golden)
	require.NoError(t, err)
	o, err := continuation.Compare(t.Context(), golden, actual, continuation.Options{NoLayers: true})
	require.NoError(t, err)
	assert.Len(t, o.Positions, n)
	assert.Less(t, time.Since(start), 30*time.Second)
}
