package judge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/toy"
)

// The same fault in two layers that run one line is one cause, and another one is another.
func TestTwins(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	chain := func(by ...float64) *dump.Run {
		var ports []port
		in := make([]float64, x.Len())
		for i := range in {
			in[i] = x.At(i)
		}
		for b := range 2 {
			var dw, bn []float32
			for _, v := range in {
				dw, bn = append(dw, float32(v*v)), append(bn, float32(by[b]*v*v))
			}
			for i, v := range bn {
				in[i] = float64(v)
			}
			ports = append(ports, port{fmt.Sprintf("m.%d.dw-output", b), toy.Of(t, dw, 1, 16)}, port{fmt.Sprintf("m.%d.bn-output", b), toy.Of(t, bn, 1, 16)})
		}
		return run("torch", ports...)
	}
	p := normed(t, x)
	p.Frames = []program.Frame{{File: "/ref/modeling_x.py", Line: 12, Text: "3 * x"}}
	p.Stacks = [][]int{{0}}
	p.Ops[1].Stack, p.Ops[3].Stack = 0, 0
	for _, tt := range []struct {
		by     []float64
		twins  [][]int
		reason string
	}{
		{[]float64{6, 6}, [][]int{{2, 2}}, "in both layers"},
		{[]float64{6, 3}, [][]int{{1, 2}}, "in one of two"},
		{[]float64{6, 1.5}, [][]int{{1, 2}, {1, 2}}, "two faults of one line"},
	} {
		k := judge.Case{Name: "short", Golden: chain(3, 3), Actual: chain(tt.by...), Program: p}
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
