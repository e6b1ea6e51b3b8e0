package judge_test

import (
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
			twins = append(twins, k.Edit.Twins)
		}
		assert.Equal(t, tt.twins, twins, tt.reason)
	}
}
