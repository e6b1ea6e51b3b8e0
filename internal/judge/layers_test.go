package judge_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/toy"
)

// What can be judged of which layer, and why others cannot.
func TestLayers(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	golden := run("torch", port{"m.0.lin-output", x}, port{"m.0-output", x}, port{"m.1.lin-output", x}, port{"m.head-input_0", x}, port{"m.head-output", x},
		port{"m.head/2-output", x}, port{"m.lost-output", x})
	actual := run("max", port{"m.0.lin-output", x}, port{"m.0-output", x}, port{"m.1.lin-output", x}, port{"m.head-input_0", x}, port{"m.head-output", x}, port{"m.head/2-output", x})
	c := compareRuns(t, golden, actual)
	l := c.Layers
	assert.Equal(t, []string{"m.0.lin", "m.0", "m.1.lin", "m.head", "m.head/2"}, l.Judged())
	assert.Equal(t, []bool{true, false}, []bool{l.Continued("m.head"), l.Continued("m.0")}, "m.head/2 goes on from m.head")
	assert.False(t, l.Several())
	runs := l.Runs("m.head")
	require.Len(t, runs, 1)
	assert.Equal(t, []int{1, 1}, []int{len(runs[0].Judged), len(runs[0].Inputs)})
	assert.Empty(t, l.Runs("m.lost"))
	assert.Contains(t, l.Missing("m.lost"), "missing: the candidate did not record m.lost")
	assert.Equal(t, "missing: the candidate did not record an output of m.other", l.Missing("m.other"))
}

// What a test demands and a side lacks is told apart: what the candidate lost, and what the golden has no more.
func TestRequire(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	c := compareRuns(t, run("torch", port{"m.a-output", x}, port{"m.b-output", x}, port{"m.b-output_1", x}), run("max", port{"m.a-output", x}))
	lost, gone := c.Require(map[string]dump.Joined{"short": {"0": {"m.a-output", "m.b-output", "m.b-output_1", "m.c-output"}}})
	assert.Equal(t, [][]string{{"m.b"}, {"m.c"}}, [][]string{lost, gone})
	assert.Equal(t, map[string]dump.Joined{"short": {"0": {"m.a-output"}}}, c.Joined())
}

// The error of a layer on golden inputs is its own, and the rest came in.
func TestSplitOfErrors(t *testing.T) {
	x := toy.Of(t, []float32{3, 4}, 1, 2)
	side := func(mode string, y ...float32) *dump.Run {
		r := run("max", port{"m.a-output", toy.Of(t, y, 1, 2)})
		r.Info.Mode = mode
		return r
	}
	for _, tt := range []struct {
		standard, injected                 []float32
		local, inherited, cosine, worstRow float64
		reason                             string
	}{
		{[]float32{3, 9}, []float32{3, 6}, 2, 3, 1, 0.4, "both in one direction"},
		{[]float32{3, 3}, []float32{3, 6}, 2, 3, -1, 0.4, "against each other"},
		{[]float32{6, 6}, []float32{3, 6}, 2, 3, 0, 0.4, "in two"},
		{[]float32{6, 9}, []float32{3, 6}, 2, 3 * math.Sqrt2, math.Sqrt2 / 2, 0.4, "and between them"},
		{[]float32{5, 4}, []float32{3, 4}, 0, 2, 0, 0, "all of it came in"},
	} {
		c := compareRuns(t, run("torch", port{"m.a-output", x}), side(dump.Standard, tt.standard...), func(k *judge.Case) { k.Injected = side(dump.Injected, tt.injected...) })
		l := row(t, c.Report("toy", true), "m.a-output")
		require.NotNil(t, l.LocalL2, tt.reason)
		got := []float64{float64(*l.LocalL2), float64(*l.InheritedL2), float64(*l.LocalInheritedCosine), float64(l.Injected.RowRelL2)}
		assert.InDeltaSlice(t, []float64{tt.local, tt.inherited, tt.cosine, tt.worstRow}, got, 1e-6, tt.reason)
	}
}

// The answer is the largest logit of the last row, and how sure it is.
func TestAnswer(t *testing.T) {
	logits := toy.Of(t, []float64{9, 0, 0, 0, math.Log(2), 0}, 1, 2, 3)
	a, err := compareRuns(t, run("torch", port{"lm_head-output", logits}), run("max", port{"lm_head-output", logits})).Answer("short")
	require.NoError(t, err)
	assert.Equal(t, [2]any{1, "lm_head output"}, [2]any{a.Argmax, a.Where})
	assert.InDelta(t, 0.5, a.Confidence, 1e-9)
	_, err = compareRuns(t, run("torch", port{"m.norm-output", logits}), run("max", port{"m.norm-output", logits})).Answer("short")
	assert.ErrorContains(t, err, "nothing is answered")
}
