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
// for Check) and the modifiers. Where the fixture and a modifier limit the same figure the modifier
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
