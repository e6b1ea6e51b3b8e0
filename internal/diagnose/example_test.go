package diagnose_test

import (
	"context"
	"fmt"
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/tensor"
)

// A layer that doubles in the reference and triples in the candidate, and a hypothesis that says
// so.
func Example() {
	golden, actual := make([]float32, 64), make([]float32, 64)
	for i := range golden {
		x := math.Sin(float64(i))
		golden[i], actual[i] = float32(2*x), float32(3*x)
	}
	g, _ := tensor.Of(golden, 1, 4, 16)
	a, _ := tensor.Of(actual, 1, 4, 16)
	target := &diagnose.Port{Case: "short", Step: "0", Layer: "m.scale", Port: "output", Golden: g, Actual: a, Floor: compare.Floor(g.DType(), a.DType())}
	scene := &diagnose.Scene{Run: &diagnose.Run{Ports: []*diagnose.Port{target}}, Kind: "local", Case: "short", Step: "0", Layer: "m.scale", Target: target}

	triples := diagnose.Func(func(s *diagnose.Scene) []diagnose.Prediction {
		return []diagnose.Prediction{{ID: "house/triples", Text: "3·x in place of 2·x",
			Value: s.Array(s.Target.Golden).Map(func(x float64) float64 { return x * 3 / 2 })}}
	})
	for _, c := range diagnose.Diagnose(context.Background(), scene, []diagnose.Hypothesis{triples}) {
		fmt.Println(c.ID, c.Layer, c.Proven, c.Fit < 1e-7, math.Round(10*c.FitGolden)/10)
	}
	// Output:
	// house/triples m.scale true true 0.5
}
