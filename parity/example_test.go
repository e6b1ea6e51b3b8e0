package parity_test

import (
	"math"
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/testmain"
)

// What a package with parity tests looks like. TestMain names the fixture, each layer becomes a subtest.
func Example() {
	_ = func(m *testing.M) { // TestMain
		testmain.Main(m, testmain.Fixture("fixtures/minilm"))
	}
	_ = func(t *testing.T) { // TestMiniLM
		parity.Layer(t, "embeddings").Within(1e-5, 1e-4)
		parity.Layers(t, "encoder.layer.*.attention").In(tensor.BF16, 2e-2, 2e-2).Within(1e-4, 1e-3)
		parity.All(t).Check()
	}
}

// An engine that is written in Go is judged like a recorded run.
func ExampleFunc() {
	engine := func(in parity.Input) (map[string]*tensor.Tensor, error) {
		return map[string]*tensor.Tensor{"model.norm": in.Golden["model.norm-output"]}, nil
	}
	_ = func(t *testing.T) {
		parity.Func(t, engine)
		parity.Layer(t, "norm").Check()
	}
}

// Is the activation what we think it is? The calculation is told to fit the candidate, or not, without compiling anything.
func ExampleTry() {
	_ = func(t *testing.T) {
		parity.Try(t, "encoder.layer.0.intermediate.intermediate_act_fn", func(in parity.TryInput) (*tensor.Tensor, error) {
			x := in.Inputs["input_0"]
			values := make([]float64, x.Len())
			x.Float64s(values, 0)
			for i, v := range values {
				values[i] = v / (1 + math.Exp(-1.702*v))
			}
			return tensor.Of(values, x.Shape()...)
		})
	}
}
