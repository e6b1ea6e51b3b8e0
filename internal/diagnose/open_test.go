package diagnose_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/tensor"
)

// Where not all was recorded nothing is proven, and only what fits as well as a proof is said.
func TestOpenScene(t *testing.T) {
	golden, actual := make([]float32, 64), make([]float32, 64)
	for i := range golden {
		golden[i], actual[i] = float32(math.Sin(float64(i))), float32(2*math.Sin(float64(i)))
	}
	g, err := tensor.Of(golden, 4, 16)
	require.NoError(t, err)
	a, err := tensor.Of(actual, 4, 16)
	require.NoError(t, err)
	times := func(f float64) *diagnose.Array {
		return diagnose.ArrayOf(g).Map(func(x float64) float64 { return f * x })
	}
	for _, c := range []struct {
		open          bool
		says          diagnose.Prediction
		shown, proven bool
		reason        string
	}{
		{false, diagnose.Prediction{Value: times(2)}, true, true, "all was recorded, and it fits"},
		{false, diagnose.Prediction{Value: times(1.9)}, true, false, "it fits to 5 %"},
		{false, diagnose.Prediction{}, true, false, "a pattern"},
		{true, diagnose.Prediction{Value: times(2)}, true, false, "it fits, but the error may be before it"},
		{true, diagnose.Prediction{Value: times(1.9)}, false, false, "5 % says nothing of what was not recorded"},
		{true, diagnose.Prediction{}, false, false, "nor does a pattern"},
	} {
		target := &diagnose.Port{Layer: "m", Port: "output", Golden: g, Actual: a, Floor: compare.Floor(g.DType(), a.DType())}
		s := &diagnose.Scene{Run: &diagnose.Run{Ports: []*diagnose.Port{target}}, Kind: "local", Layer: "m", Target: target, Open: c.open}
		h := diagnose.Hypothesis(func(*diagnose.Scene) []diagnose.Prediction {
			c.says.ID = "house/x"
			return []diagnose.Prediction{c.says}
		})
		causes := diagnose.Diagnose(context.Background(), s, []diagnose.Hypothesis{h})
		assert.Equal(t, c.shown, len(causes) == 1, c.reason)
		if c.shown {
			assert.Equal(t, c.proven, causes[0].Proven, c.reason)
		}
	}
}
