// Package parity turns the comparison of a model port with its reference into ordinary Go subtests.
//
//	func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/minilm")) }
//
//	func TestMiniLM(t *testing.T) {
//		parity.Layer(t, "embeddings").Within(1e-5, 1e-4) // one layer, one subtest
//		parity.Layers(t, "encoder.layer.*.attention").In(tensor.BF16, 2e-2, 2e-2).Within(1e-4, 1e-3)
//		parity.All(t).Check() // the rest, by the fixture's tolerances
//	}
//
// Each layer is a subtest TestMiniLM/<layer>, named by the golden's own label, so go test -run
// bisects. With several cases or steps a layer has children <case>.<step>. A layer is judged by its
// outputs and taps in the candidate's standard run; its inputs are evidence of where an error came
// from.
//
// [Layer], [Layers] and [All] choose; [Assertion.With] has criteria as modifiers, all of which must
// hold, and ends in a terminal: Within for numpy's rule |a − g| ≤ atol + rtol·|g|, Check for the
// fixture's tolerances. A forgotten terminal fails the test.
//
// A run that fails says why where the cause is known (docs/causes.md).
//
// A test fails where nothing was compared: an unknown layer, a filter that hits no layer, a layer
// that the candidate did not record.
package parity

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/tensor"
)

// Layer chooses one layer by the golden's label or the end of it, cut at a dot:
// "encoder.layer.3.attention". No such layer, two layers that end so, or a layer that the candidate
// did not record fail the test.
func Layer(t *testing.T, name string) *Assertion {
	t.Helper()
	a := newAssertion(t, fmt.Sprintf("parity.Layer(t, %q)", name), func(c *judge.Comparison) ([]string, error) {
		label, err := c.Layers.Find(name)
		return []string{label}, err
	})
	a.named = true
	return a
}

// Layers chooses all layers that match a glob: * stands for one segment between dots, ** for any
// number of them; the pattern may match the end of a label. Layers that the candidate did not
// record are left out; at least one must be there, and one in each numbered block where the golden
// has any, unless it is known why not, as of an activation.
func Layers(t *testing.T, pattern string) *Assertion {
	t.Helper()
	a := newAssertion(t, fmt.Sprintf("parity.Layers(t, %q)", pattern), nil)
	a.choose = func(c *judge.Comparison) ([]string, error) {
		layers, err := c.Layers.Glob(pattern)
		if err != nil {
			return nil, err
		}
		open, err := c.DemandBlocks(pattern)
		a.open = open
		return layers, err
	}
	return a
}

// All chooses every layer that both sides recorded and that this test has not asserted before.
//
// It fails in a subtest of its own, parity:coverage, if what both recorded is too little to say that
// the model is right: if the model's final output or a whole numbered block was not compared, or a
// layer that one side calls otherwise may be another layer. The fixture's scope, ignore and names
// are for what is meant to be so.
func All(t *testing.T) *Assertion {
	t.Helper()
	a := newAssertion(t, "parity.All(t)", nil)
	a.choose = func(c *judge.Comparison) ([]string, error) {
		layers := c.Layers.Judged()
		if len(layers) == 0 {
			return nil, errors.New("the candidate recorded no output of any layer, only inputs: nothing can be judged")
		}
		var rest []string
		for _, l := range layers {
			if _, taken := a.scope.asserted[l]; !taken {
				rest = append(rest, l)
			}
		}
		a.open = c.Demand()
		return rest, nil
	}
	return a
}

// Assertion is a choice of layers with its criteria. It does nothing until a terminal, Within or
// Check, runs it.
type Assertion struct {
	t      *testing.T
	scope  *scope
	call   string // as the user wrote it
	line   string // file:line of the call
	choose func(*judge.Comparison) ([]string, error)
	named  bool // one layer, by its name
	extra  compare.Criteria
	in     map[tensor.DType]compare.Criteria
	open   []string // what should be covered and is not; known when layers were chosen
	misuse error
	done   bool
}

func newAssertion(t *testing.T, call string, choose func(*judge.Comparison) ([]string, error)) *Assertion {
	t.Helper()
	a := &Assertion{t: t, scope: scopeOf(t), call: call, line: callerLine(), choose: choose, extra: compare.Criteria{}}
	t.Cleanup(func() {
		if !a.done && !t.Failed() && !t.Skipped() {
			t.Errorf("%s: %s compared nothing: end it with .Check() or .Within(atol, rtol)", a.line, call)
		}
	})
	return a
}

// callerLine is the place in the user's test: the first frame outside this package.
func callerLine() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	f, more := frames.Next()
	for more && strings.HasPrefix(f.Function, "github.com/goparity/goparity/parity.") {
		f, more = frames.Next()
	}
	return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
}

// In sets the tolerance for candidates whose tensors have this type; the terminal's applies to all
// other types.
func (a *Assertion) In(d tensor.DType, atol, rtol float64) *Assertion {
	if a.in == nil {
		a.in = map[tensor.DType]compare.Criteria{}
	}
	a.in[d] = a.within(fmt.Sprintf("In(%s, %v, %v)", d, atol, rtol), atol, rtol)
	return a
}

// With asks for a limit besides, by the key that tolerances of fixture.yaml have: cosine, rel_l2, row_rel_l2, mse, ulp,
// snr, top_k, kl, noise, cost, or equal_nan with 1. rel_l2 is asked of the worst row, too, unless row_rel_l2 is.
func (a *Assertion) With(key string, limit float64) *Assertion {
	var known []string
	for _, c := range compare.Table() {
		known = append(known, c.Key)
		if c.Key != key {
			continue
		}
		if err := c.Check(limit); err != nil {
			a.wrong("With(%q, %v): %w", key, limit, err)
		}
		a.extra[c] = limit
		if _, asked := a.extra[compare.RowRelL2]; c == compare.RelL2 && !asked {
			a.extra[compare.RowRelL2] = limit
		}
		return a
	}
	a.wrong("With(%q, %v): unknown key: want one of %s", key, limit, strings.Join(known, ", "))
	return a
}

// within is the elementwise tolerance that a call of the user asks for.
func (a *Assertion) within(call string, atol, rtol float64) compare.Criteria {
	c := compare.Criteria{compare.Atol: atol, compare.Rtol: rtol}
	for k, limit := range c.All() {
		if err := k.Check(limit); err != nil {
			a.wrong("%s: %s: %w", call, k.Key, err)
		}
	}
	return c
}

// wrong remembers the first misuse; the terminal reports it.
func (a *Assertion) wrong(format string, args ...any) {
	if a.misuse == nil {
		a.misuse = fmt.Errorf(format, args...)
	}
}

// Within runs the assertion: every element must satisfy |a − g| ≤ atol + rtol·|g| (the rule of
// numpy and torch; integers and bools exactly, NaN matches nothing, an infinity only itself),
// besides the modifiers. It reports whether all chosen layers passed.
func (a *Assertion) Within(atol, rtol float64) bool {
	a.t.Helper()
	return a.run(a.within(fmt.Sprintf("Within(%v, %v)", atol, rtol), atol, rtol))
}

// Check runs the assertion with the fixture's tolerances, and where it has none with the defaults
// of [compare.Default], besides the modifiers. It reports whether all chosen layers passed.
func (a *Assertion) Check() bool {
	a.t.Helper()
	return a.run(nil)
}

// criteria returns what judges a port, nil for the fixture's alone: the terminal's tolerance (nil
// for Check) and the modifiers. Where the fixture and a modifier limit the same metric the modifier
// does.
func (a *Assertion) criteria(p *judge.Port, within compare.Criteria) compare.Criteria {
	if tol, ok := a.in[p.Actual.DType()]; ok {
		within = tol
	}
	switch {
	case within != nil:
		within = maps.Clone(within)
	case len(a.extra) == 0:
		return nil
	default:
		within = maps.Clone(p.Criteria)
	}
	maps.Copy(within, a.extra)
	return within
}

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
