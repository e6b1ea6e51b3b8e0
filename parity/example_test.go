package parity_test

import (
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
		parity.All(t).With("cosine", 0.9999).With("rel_l2", 1e-4).With("ulp", 16).Check()
	})
	// Output:
	// parity: toy: PASS: compared 2 of 2 outputs, worst row rel. L2 9.77e-8 at model.layers.0.mlp.act_fn input_0, limit 1e-4
}

// An engine that is written in Go is judged like a recorded run.
func ExampleFunc() {
	engine := func(in parity.Pass) (map[string]*tensor.Tensor, error) {
		return map[string]*tensor.Tensor{"model.norm": in.Golden["model.norm-output"]}, nil
	}
	goTest(func(t *testing.T) {
		parity.Func(t, engine)
		parity.Layer(t, "norm").Check()
	})
	// Output:
	// parity: toy: PASS: compared 1 of 2 outputs, worst row rel. L2 0 at model.norm output, limit 1e-4
}
