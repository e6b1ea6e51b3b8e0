package parity_test

import (
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/tensor"
)

// t is that of a test.
var t *testing.T

// TestMain names the fixture, and each layer becomes a subtest:
//
//	func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/toy")) }
//
// The last line of go test is the package's verdict.
func Example() {
	parity.Layer(t, "norm").Within(1e-5, 1e-4)
	parity.Layers(t, "layers.*.mlp.*").In(tensor.BF16, 2e-2, 2e-2).Within(1e-4, 1e-3)
	parity.All(t).Check()
}

// Criteria are added by modifiers; all of them must hold.
func ExampleAssertion() {
	parity.All(t).With("cosine", 0.9999).With("rel_l2", 1e-4).With("ulp", 16).Check()
}

// An engine that is written in Go is judged like a recorded run.
func ExampleFunc() {
	parity.Func(t, func(in parity.Pass) (map[string]*tensor.Tensor, error) {
		return map[string]*tensor.Tensor{"model.norm": in.Golden["model.norm-output"]}, nil
	})
	parity.Layer(t, "norm").Check()
}
