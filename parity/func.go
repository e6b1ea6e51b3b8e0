package parity

import (
	"testing"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/tensor"
)

// Pass is one forward pass that a function is asked for.
type Pass struct {
	Case, Step string
	TokenIDs   [][]int                   // by sequence, as the reference got them; nil if the golden does not say
	Golden     map[string]*tensor.Tensor // the reference's tensors by label, "model.norm-input_0"; nil along a path

	// Path is the execution path that Paths asks for, "decode:8", and Fed what this forward pass of it
	// feeds. Without a path a pass feeds whole sequences, and steps after it a token of each.
	Path string
	Fed  []Span
}

// Span is the part of a sequence that a forward pass feeds: its tokens From ≤ i < To, after those in
// its cache.
type Span struct {
	Sequence, From, To int
	Fresh              bool  // the sequence begins again, with an empty cache
	Hidden             []int // tokens after To that the mask hides, of the path mask
}

// Func judges a Go function in place of a recorded run, in this test: an engine written in Go, or a
// single layer. run is called once for each case and step, and returns tensors by label:
// "model.norm-output", or "model.norm" for its output. If it fails, the test fails as parity:infra.
// Func must come before the first assertion.
//
// Paths calls it for each forward pass of the fixture's paths. The rows of several sequences come
// one after the other, [rows, …]; along padding and mask padded to the longest, [batch, seq, …].
func Func(t *testing.T, run func(Pass) (map[string]*tensor.Tensor, error)) {
	t.Helper()
	s := scopeOf(t)
	if s.fixture == nil {
		t.Fatal("parity.Func: TestMain names several fixtures: call parity.Use(t, NAME) first")
	}
	if s.opened || len(s.asserted) > 0 {
		t.Fatal("parity.Func: this test has asserted layers already: call it first")
	}
	s.c, s.err = s.fixture.CompareFunc(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
		in := Pass{Case: p.Case, Step: p.Step, TokenIDs: p.TokenIDs, Path: p.Path}
		for _, i := range p.Items {
			in.Fed = append(in.Fed, Span{i.Sequence, i.From, i.To, i.Fresh, i.Hidden})
		}
		if p.Golden != nil {
			in.Golden = make(map[string]*tensor.Tensor, len(p.Golden))
		}
		for _, e := range p.Golden {
			in.Golden[e.Label()] = e.Tensor
		}
		return run(in)
	})
}
