package parity_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/tensor"
)

// TestMain names the fixture, and each layer becomes a subtest:
//
//	func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/toy")) }
//
// The last line of go test is the package's verdict.
func Example() {
	TestToy := func(t *testing.T) {
		parity.Layer(t, "norm").Within(1e-5, 1e-4)
		parity.Layers(t, "layers.*.mlp.*").In(tensor.BF16, 2e-2, 2e-2).Within(1e-4, 1e-3)
		parity.All(t).Check()
	}
	goTest(TestToy)
	// Output:
	// parity: toy: PASS: compared 2 of 2 outputs, worst row rel. L2 9.77e-8 at model.layers.0.mlp.act_fn input_0, limit 1e-4
}

// Criteria are added by modifiers; all of them must hold.
func ExampleAssertion() {
	goTest(func(t *testing.T) {
		parity.All(t).Cosine(0.9999).RelL2(1e-4).ULP(16).Check()
	})
	// Output:
	// parity: toy: PASS: compared 2 of 2 outputs, worst row rel. L2 9.77e-8 at model.layers.0.mlp.act_fn input_0, limit 1e-4
}

// An engine that is written in Go is judged like a recorded run.
func ExampleFunc() {
	engine := func(in parity.Input) (map[string]*tensor.Tensor, error) {
		return map[string]*tensor.Tensor{"model.norm": in.Golden["model.norm-output"]}, nil
	}
	goTest(func(t *testing.T) {
		parity.Func(t, engine)
		parity.Layer(t, "norm").Check()
	})
	// Output:
	// parity: toy: PASS: compared 1 of 2 outputs, worst row rel. L2 0 at model.norm output, limit 1e-4
}

// Is the activation what we think it is? The calculation is told to fit the candidate, or not,
// without compiling anything.
func ExampleTry() {
	silu := func(in parity.TryInput) (*tensor.Tensor, error) {
		x := in.Inputs["input_0"]
		values := make([]float64, x.Len())
		x.Float64s(values, 0)
		for i, v := range values {
			values[i] = v / (1 + math.Exp(-v))
		}
		return tensor.Of(values, x.Shape()...)
	}
	goTest(func(t *testing.T) {
		for _, fits := range parity.Try(t, "layers.0.mlp.act_fn", silu) {
			fmt.Println("it is what the reference does:", fits.Right)
		}
		parity.All(t).Check()
	})
	// Output:
	// it is what the reference does: true
	// parity: toy: PASS: compared 2 of 2 outputs, worst row rel. L2 9.77e-8 at model.layers.0.mlp.act_fn input_0, limit 1e-4
}

// A cause of your own, tried by hand on a scene: testmain.Hypotheses gives it those of real failures.
func ExampleHypothesisFunc() {
	half := parity.HypothesisFunc(func(s *parity.Scene) []parity.Prediction {
		in := s.Actual(s.Input(s.Layer))
		if in == nil {
			return nil
		}
		return []parity.Prediction{{ID: "house/half", Text: "the layer returns half of its input",
			Value: in.Map(func(x float64) float64 { return x / 2 })}}
	})
	x, err := tensor.Of([]float32{2, 4, 6}, 1, 3)
	if err != nil {
		panic(err)
	}
	in := &parity.Port{Layer: "model.scale", Port: "input_0", Golden: x, Actual: x, Agrees: true}
	out := &parity.Port{Layer: "model.scale", Port: "output", Golden: x, Actual: x}
	scene := &parity.Scene{Kind: "local", Layer: "model.scale", Target: out, Ports: []*parity.Port{in, out}}
	for _, p := range half.Predict(scene) {
		fmt.Println(p.ID, p.Value.Data)
	}
	// Output: house/half [1 2 3]
}
