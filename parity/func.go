package parity

import (
	"testing"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// Input is one forward pass that a function is asked for.
type Input struct {
	Case, Step string
	TokenIDs   [][]int                   // as the reference got them; nil if the golden does not say
	Golden     map[string]*tensor.Tensor // the reference's tensors by label, "model.norm-input_0"
}

// Func judges a Go function in place of a recorded run, in this test: an engine written in Go, or a
// single layer. run is called once for each case and step, and returns tensors by label:
// "model.norm-output", or "model.norm" for its output. If it fails, the test fails as parity:infra.
// Func must come before the first assertion.
func Func(t *testing.T, run func(Input) (map[string]*tensor.Tensor, error)) {
	t.Helper()
	s := scopeOf(t)
	if s.fixture == nil {
		t.Fatal("parity.Func: TestMain names several fixtures: call parity.Use(t, NAME) first")
	}
	if s.opened || len(s.asserted) > 0 {
		t.Fatal("parity.Func: this test has asserted layers already: call it first")
	}
	s.c, s.err = s.fixture.CompareFunc(func(caseName, step string, ids [][]int,
		golden []dump.Entry) (map[string]*tensor.Tensor, error) {
		in := Input{Case: caseName, Step: step, TokenIDs: ids, Golden: make(map[string]*tensor.Tensor, len(golden))}
		for _, e := range golden {
			in.Golden[e.Label()] = e.Tensor
		}
		return run(in)
	})
}
