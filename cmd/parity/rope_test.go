package main

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// What the eye sees of testdata/rope: which token is the most likely, and how far the logits are
// off. testdata/script/rope_theta.txt is what parity sees.
func TestRopeThetaLooksRight(t *testing.T) {
	golden := logits(t, "ref")
	for _, c := range []struct {
		dump     string
		from, to float64
		reason   string
	}{
		{"port", 0, 1e-5, "the theta of the config"},
		{"lost", 4, 4.5, "the theta that Llama has without one: nobody sees it in the tokens"},
	} {
		t.Run(c.dump, func(t *testing.T) {
			same, far := alike(golden, logits(t, c.dump))
			assert.Equal(t, 16, same, "places with the same most likely token; %s", c.reason)
			assert.GreaterOrEqual(t, far, c.from, c.reason)
			assert.LessOrEqual(t, far, c.to, c.reason)
		})
	}
	same, far := alike([][]float64{{1, 2}, {4, 3}}, [][]float64{{1, 5}, {3, 4}})
	assert.Equal(t, 1, same, "other tokens are counted as such")
	assert.InDelta(t, 3, far, 0)
}

// logits are those of a dump of testdata/rope, a row for each token.
func logits(t *testing.T, name string) (rows [][]float64) {
	t.Helper()
	opened, err := store.OpenCases(filepath.Join("testdata", "rope", name), dump.Options{})
	require.NoError(t, err)
	run := opened[0]
	defer func() { require.NoError(t, run.Close()) }()
	for _, e := range run.Entries {
		if e.Label() == "model.lm_head-output" {
			return rowsOf(e.Tensor)
		}
	}
	require.Fail(t, "no logits", name)
	return nil
}

func rowsOf(x *tensor.Tensor) (rows [][]float64) {
	for start := 0; start < x.Len(); start += x.RowLen() {
		row := make([]float64, x.RowLen())
		x.Float64s(row, start)
		rows = append(rows, row)
	}
	return rows
}

// alike returns in how many rows the largest element is the same one, and the largest difference.
func alike(a, b [][]float64) (same int, far float64) {
	for i := range a {
		if largest(a[i]) == largest(b[i]) {
			same++
		}
		for j := range a[i] {
			far = max(far, math.Abs(a[i][j]-b[i][j]))
		}
	}
	return same, far
}

func largest(row []float64) (at int) {
	for i, v := range row {
		if v > row[at] {
			at = i
		}
	}
	return at
}
