package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

// Calls of one layer may be made in another order, as those of a rotary embedding for each kind of layer.
func TestCallsInAnotherOrder(t *testing.T) {
	table := func(scale float64) port { return port{"m.rotary-output", toy.Wave(t, scale, 0, 1, 6, 8)} }
	again := func(p port, label string) port { return port{label, p.Tensor} }
	local, global, wrong := table(1), table(3), table(0.5)
	out := port{"m-output", toy.Wave(t, 2, 1, 1, 6, 8)}
	for _, tt := range []struct {
		first, second port
		want          report.Verdict
		reason        string
	}{
		{local, global, report.Pass, "as the golden"},
		{global, local, report.Pass, "each is what the other call makes"},
		{global, global, report.Fail, "one table for all"},
		{wrong, global, report.Fail, "one is wrong"},
		{global, wrong, report.Fail, "one has the other's place, and the other is wrong"},
	} {
		golden := toy.Run("torch", local, again(global, "m.rotary(2)-output"), out)
		made := out
		if tt.want == report.Fail {
			made.Tensor = toy.Wave(t, 2, 1.5, 1, 6, 8) // what follows from it
		}
		actual := toy.Run("max", again(tt.first, "m.rotary-output"), again(tt.second, "m.rotary(2)-output"), made)
		c, err := judge.Compare(t.Context(), []judge.Case{{Name: "short", Golden: golden, Actual: actual}}, judge.Options{})
		require.NoError(t, err, tt.reason)
		r := c.Report("toy", true)
		assert.Equal(t, tt.want, r.Verdict, tt.reason)
		if tt.want == report.Fail && assert.NotNil(t, r.FirstDivergence, tt.reason) {
			assert.Contains(t, r.FirstDivergence.Layer, "m.rotary", tt.reason)
		}
	}
}
