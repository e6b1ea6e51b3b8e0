package judge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/setting"
)

// The same fault in two layers that run one line is one cause, and another one is another.
func TestTwins(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	p := normed(t, x)
	p.Frames = []program.Frame{{File: "/ref/modeling_x.py", Line: 12, Text: "3 * x"}}
	p.Stacks = [][]int{{0}}
	p.Ops[1].Stack, p.Ops[3].Stack = 0, 0
	for _, tt := range []struct {
		by     [2]float64
		twins  [][]int
		reason string
	}{
		{[2]float64{6, 6}, [][]int{{2, 2}}, "in both layers"},
		{[2]float64{6, 3}, [][]int{{1, 2}}, "in one of two"},
		{[2]float64{6, 1.5}, [][]int{{1, 2}, {1, 2}}, "two faults of one line"},
	} {
		k := judge.Case{Name: "short", Golden: normedRun(t, x, [4]float64{1, 3, 1, 3}, 0),
			Actual: normedRun(t, x, [4]float64{1, tt.by[0], 1, tt.by[1]}, 0), Program: p}
		c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFull}})
		require.NoError(t, err)
		var twins [][]int
		for _, k := range c.Report("toy", true).Causes {
			if !k.Proven {
				continue
			}
			require.NotNil(t, k.Edit, tt.reason)
			assert.Equal(t, []string{"modeling_x.py:12"}, k.Edit.Lines, tt.reason)
			assert.Equal(t, []string{"modeling_x.py:12 3 * x"}, k.Edit.Code, tt.reason)
			assert.Equal(t, []string{"aten.mul.Tensor", fmt.Sprintf("m.%d.bn:1", len(twins))}, []string{k.Edit.Operator, k.Edit.At}, tt.reason)
			assert.Contains(t, k.Text, fmt.Sprintf(`modeling_x.py:12 3 * x: "other of mul: 3 → %g" reproduces the candidate to`, tt.by[len(twins)]), tt.reason)
			assert.Contains(t, k.Text, fmt.Sprintf("(%d of 2 layers)", tt.twins[len(twins)][0]), tt.reason)
			twins = append(twins, k.Edit.Twins)
		}
		assert.Equal(t, tt.twins, twins, tt.reason)
	}
}

// An edit is tried by its place and text: how far down the candidate is what the program makes, as recorded and with it.
func TestTry(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	right, wrong := [4]float64{1, 3, 1, 3}, [4]float64{1, 6, 1, 1.5}
	p := normed(t, x)
	p.Frames, p.Stacks = []program.Frame{{File: "/ref/modeling_x.py", Line: 12, Text: "3 * x"}}, [][]int{{0}}
	p.Ops[1].Stack, p.Ops[3].Stack = 0, 0
	c := compareRuns(t, normedRun(t, x, right, 0), normedRun(t, x, wrong, 0), func(k *judge.Case) { k.Program = p })
	lines, err := c.Operators("bn")
	require.NoError(t, err)
	assert.Equal(t, []string{"m.0.bn:1 mul modeling_x.py:12 3 * x", "m.1.bn:1 mul modeling_x.py:12 3 * x"}, lines)
	for _, tt := range []struct {
		edits   []string
		made    []string
		with    string
		further bool
		err     string
	}{
		{[]string{"m.0.bn:1 scalar 6"}, []string{`m.0.bn:1 "other of mul: 3 → 6", modeling_x.py:12 3 * x`},
			"3 of 4 tensors are what the program makes of those before them; the first that is not is output of m.1.bn, off by relative L2 1", true, ""},
		{[]string{"m.0.bn:1 scalar 6", "m.1.bn:1 scalar 1.5"}, nil, "4 of 4 tensors are what the program makes of those before them", true, ""},
		{[]string{"m.1.bn:1 scalar 1.5"}, nil, "3 of 4 tensors are what the program makes of those before them; the first that is not is output of m.0.bn, off by relative L2 0.5", false, ""},
		{[]string{"bn:1 scalar 6"}, []string{`m.0.bn:1 "other of mul: 3 → 6", modeling_x.py:12 3 * x`, `m.1.bn:1 "other of mul: 3 → 6", modeling_x.py:12 3 * x`}, "3 of 4 tensors", true, ""},
		{[]string{"m.0.bn:2 scalar 6"}, nil, "", false, "the last operator of m.0.bn is 1"},
		{[]string{"m.0.act:1 scalar 6"}, nil, "", false, "no operator of the reference's program ran in a layer m.0.act itself"},
		{[]string{"6"}, nil, "", false, "want LAYER:OPERATOR KIND"},
	} {
		tried, err := c.Try(t.Context(), tt.edits)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Len(t, tried, 1)
		if tt.made != nil {
			assert.Equal(t, tt.made, tried[0].Edits)
		}
		assert.Equal(t, [3]any{"short", 2, 4}, [3]any{tried[0].Case, tried[0].Before.Right, tried[0].Before.Of})
		assert.Contains(t, tried[0].With.String(), tt.with)
		assert.Equal(t, tt.further, tried[0].Further(), tt.edits)
	}
	_, err = compareRuns(t, normedRun(t, x, right, 0), normedRun(t, x, wrong, 0)).Try(t.Context(), []string{"m.0.bn:1 scalar 6"})
	assert.ErrorIs(t, err, judge.ErrNothing)
	_, err = c.Operators("act")
	assert.ErrorContains(t, err, "no operator of a reference's program ran in a layer act")
}
