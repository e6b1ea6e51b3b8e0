package parity

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// run is what both terminals do: a subtest for each chosen layer. within is nil for Check.
func (a *Assertion) run(within compare.Criteria) bool {
	a.t.Helper()
	a.begin()
	c := a.scope.open()
	layers, err := a.choose(c)
	if err != nil {
		a.t.Fatalf("%s: %s", a.call, sanitize.Text(err.Error()))
	}
	for _, l := range layers {
		if line, twice := a.scope.asserted[l]; twice {
			a.t.Fatalf("%s asserts %s again, which %s does already: keep one, or "+
				"put the other into a test of its own", a.call, l, line)
		}
		a.scope.asserted[l] = a.line
	}
	ok := len(a.open) == 0 || a.t.Run("parity:coverage", func(t *testing.T) { // a filter of -run may leave it out
		t.Helper()
		t.Errorf("%s: %s: too little was compared to say that the model is right\n  %s\n%s", a.line, a.call,
			strings.Join(a.open, "\n  "), report.OpenHelp)
	})
	for _, l := range layers {
		a.scope.declared++
		ok = a.t.Run(sanitize.Name(l), func(t *testing.T) {
			t.Helper()
			a.layer(t, c, l, func(r judge.LayerRun) string {
				if !c.Layers.Several() {
					return ""
				}
				return r.Case + "." + r.Step
			}, func(t *testing.T, r judge.LayerRun) string {
				t.Helper()
				return a.judge(t, c, r, within)
			})
		}) && ok
	}
	a.scope.failed = a.scope.failed || !ok
	return ok
}

// begin refuses a second terminal, and what was asked for wrongly.
func (a *Assertion) begin() {
	a.t.Helper()
	if a.done {
		a.t.Fatalf("%s of %s was ended twice: one terminal runs it", a.call, a.line)
	}
	a.done = true
	if a.misuse != nil {
		a.t.Fatalf("%s.%v", a.call, a.misuse)
	}
}

// grouped lists the names of things in the order in which they come, and the things of each name.
func grouped[T any](list []T, nameOf func(T) string) (names []string, by map[string][]T) {
	by = map[string][]T{}
	for _, x := range list {
		name := nameOf(x)
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], x)
	}
	return names, by
}

// layer judges one layer in its subtest. Forward passes of one name are judged in a subtest of their own, to the first
// that fails, from which the later ones follow; those without a name in the layer's. A layer of which nothing can be
// judged is skipped, or fails where it was asked for by its name; whether that leaves too little, the coverage says.
func (a *Assertion) layer(t *testing.T, c *judge.Comparison, layer string, name func(judge.LayerRun) string, judged func(*testing.T, judge.LayerRun) (unjudged string)) {
	t.Helper()
	names, passes := grouped(c.Layers.Runs(layer), name)
	if len(names) == 0 {
		t.Fatal(sanitize.Text(c.Layers.Missing(layer)))
	}
	left, why := 0, ""
	for _, n := range names {
		all := func(t *testing.T) {
			t.Helper()
			unjudged := 0
			for _, r := range passes[n] {
				w := judged(t, r)
				if t.Failed() || t.Skipped() {
					return
				}
				if w != "" {
					unjudged, why = unjudged+1, w
				}
			}
			if unjudged < len(passes[n]) {
				return
			}
			if left++; n != "" {
				t.Skip(sanitize.Line(why))
			}
		}
		if n == "" {
			all(t)
		} else {
			t.Run(sanitize.Name(n), all)
		}
	}
	switch {
	case left < len(names):
	case a.named:
		t.Error(sanitize.Text(layer + ": " + why))
	default:
		t.Skip(sanitize.Line(why))
	}
}

// judge compares the outputs of one layer in one forward pass. Where none of them can be judged it
// returns why, else "".
func (a *Assertion) judge(t *testing.T, c *judge.Comparison, run judge.LayerRun, within compare.Criteria) (unjudged string) {
	t.Helper()
	a.scope.ran++
	var worst *judge.Decision
	var first *report.Row // of a run along an execution path
	var texts, inherited, left []string
	found := &report.Report{} // filled only if an output is wrong
	for _, p := range run.Judged {
		j := p.Decide(a.criteria(p, within), a.line, a.named)
		if misuse := j.Misuse(); misuse != nil {
			t.Fatalf("%s: %s", a.call, sanitize.Text(misuse.Error()))
		}
		if worst == nil || j.Worse(worst) {
			worst = j
		}
		from := c.Blame(p)
		switch {
		case j.Row.Status == report.StatusPass:
		case j.Row.Status == report.StatusIgnored:
			left = append(left, fmt.Sprintf("%s is not judged: %s", p.Port, j.Row.Note))
		case j.Row.Status == report.StatusFail && from != "":
			inherited = append(inherited, from)
		default:
			if j.Row.Status == report.StatusFail {
				found = a.scope.finding(t, c)
			}
			j.Explain()
			j.By(t.Name())
			row := c.RowOf(p)
			if first == nil {
				first = row
			}
			told := a.scope.tells(found)
			text := j.Row.FailureText(found, told) + along(row, found)
			if !told {
				text += where(run) + rerun(t, c, j.Row.Layer)
			}
			texts = append(texts, text)
		}
	}
	attributes(t, worst, first)
	for _, text := range texts {
		t.Error(sanitize.Text(strings.TrimSuffix(text, "\n")))
	}
	if len(texts) == 0 && len(inherited) > 0 {
		a.inherit(t, inherited[0])
	}
	if len(left) == len(run.Judged) {
		return strings.Join(left, "; ")
	}
	return ""
}

// inherit skips a layer that made no error, since one bug makes everything after it differ, or fails it in one line:
// where it was asked for by name, by the test or by the subtests that -run chooses.
func (a *Assertion) inherit(t *testing.T, from string) {
	t.Helper()
	from = sanitize.Line(from)
	t.Attr("parity.blame", from)
	line := "inherited from " + from
	if !a.named && !setting.Narrowed() && session.Current().SkipsInherited() {
		t.Skip(line)
	}
	t.Error(line)
}

// attributes carries the metrics of the worst port into JUnit, and the row of a run along an execution path.
func attributes(t *testing.T, j *judge.Decision, row *report.Row) {
	if m := j.Row.Standard; m != nil && m.N > 0 {
		for _, a := range []struct {
			key   string
			value float64
		}{
			{"parity.max_abs", float64(m.MaxAbs)},
			{"parity.max_rel", float64(m.MaxRel)},
			{"parity.rel_l2", float64(m.RelL2)},
			{"parity.cosine", float64(m.Cosine)},
			{"parity.bad_fraction", j.BadFraction()},
		} {
			t.Attr(a.key, fmt.Sprintf("%.6g", a.value))
		}
	}
	attributesOf(t, row)
}

// along says which row of a run along an execution path is the first that is wrong, where what was found does not.
func along(row *report.Row, found *report.Report) string {
	if d := found.FirstDivergence; row == nil || d != nil && d.Row != nil && *d.Row == *row {
		return ""
	}
	return fmt.Sprintf("  first wrong row: path %s%s\n", row.Path, row.At())
}

// attributesOf carries a row of a run along an execution path into JUnit.
func attributesOf(t *testing.T, row *report.Row) {
	if row == nil {
		return
	}
	t.Attr("parity.path", sanitize.Line(row.Path))
	t.Attr("parity.pass", strconv.Itoa(row.Pass))
	t.Attr("parity.sequence", strconv.Itoa(row.Sequence))
	t.Attr("parity.position", strconv.Itoa(row.Position))
}

// where says which inputs of the layer agree.
func where(run judge.LayerRun) string {
	var b strings.Builder
	for _, p := range run.Inputs {
		state := "agrees"
		if !p.Agrees {
			state = "differs"
		}
		fmt.Fprintf(&b, "  %s %s (rel. L2 %.2g)\n", p.Port, state, p.Base.Result.RelL2)
	}
	return b.String()
}

// finding is the first divergence of a comparison and its causes, looked for once a test.
func (s *scope) finding(t *testing.T, c *judge.Comparison) *report.Report {
	if s.findings[c] == nil {
		r := &report.Report{}
		if err := c.Found(r); err != nil {
			t.Log(sanitize.Text(err.Error()))
		}
		s.findings[c] = r
	}
	return s.findings[c]
}

// tells reports whether the test has said before what was found, and notes that it does now. A layer may fail along
// several paths by one cause.
func (s *scope) tells(found *report.Report) (before bool) {
	what := found.Fault()
	if what == "" {
		return false
	}
	before, s.told[what] = s.told[what], true
	return before
}

// rerun is the command that runs just this subtest. To go test, layers a/b and a/c are inside the
// layer a: they are skipped.
func rerun(t *testing.T, c *judge.Comparison, layer string) string {
	pattern := setting.Pattern(t.Name())
	which := []string{"-run", pattern}
	if !c.Layers.Several() && c.Layers.Continued(layer) {
		which = append(which, "-skip", pattern+"/.")
	}
	return fmt.Sprintf("  rerun: %s\n", session.Current().GoTest(which...))
}

// scope is what one test asserts: it lives from the first call with its *testing.T to the end of
// that test.
type scope struct {
	t        *testing.T
	session  *session.Session
	fixture  *session.Fixture
	c        *judge.Comparison // of a function (Func), else set by open
	err      error
	asserted map[string]string // layer → line of the assertion
	opened   bool
	declared int // layer subtests that were asked for
	ran      int // forward passes of them that -run let through
	failed   bool
	told     map[string]bool // what was found, by the first of its failing layers
	findings map[*judge.Comparison]*report.Report
}

// scopeOf finds the scope of a test. Its end is registered first, so that it runs after all other
// clean-ups of the test.
func scopeOf(t *testing.T) *scope {
	t.Helper()
	ses := session.Current()
	if ses == nil {
		t.Fatal("parity: no session: add\n\tfunc TestMain(m *testing.M) { testmain.Main(m, " +
			"testmain.Fixture(\"fixtures/NAME\")) }\nto this package")
	}
	kept, there := ses.Scopes.LoadOrStore(t, &scope{t: t, session: ses, fixture: ses.Default(), asserted: map[string]string{},
		told: map[string]bool{}, findings: map[*judge.Comparison]*report.Report{}})
	s := kept.(*scope)
	if !there {
		t.Cleanup(s.end)
	}
	return s
}

// Use chooses the fixture of this test, by its folder or the last element of it, where TestMain
// names several. It must come before the first assertion.
func Use(t *testing.T, fixture string) {
	t.Helper()
	s := scopeOf(t)
	if len(s.asserted) > 0 || s.opened {
		t.Fatalf("parity.Use(t, %q): this test has asserted layers of %s already: call it first", fixture,
			s.fixture.Name())
	}
	f, err := s.session.Find(fixture)
	if err != nil {
		t.Fatalf("parity.Use: %v", err)
	}
	s.fixture = f
}

// chosen makes sure that the test has a fixture.
func (s *scope) chosen() {
	s.t.Helper()
	if s.fixture == nil {
		s.t.Fatal("parity: TestMain names several fixtures: choose one with parity.Use(t, NAME)")
	}
}

// open compares the runs, once per process, and reports what is wrong with the fixture as subtests
// of their own.
func (s *scope) open() *judge.Comparison {
	s.t.Helper()
	s.chosen()
	if s.c == nil && s.err == nil {
		s.c, s.err = s.fixture.Comparison()
	}
	if s.err != nil {
		s.problem(session.Trouble(s.err))
		s.t.FailNow()
	}
	if !s.opened {
		s.opened = true
		for _, p := range s.fixture.Problems(s.c) {
			s.problem(p)
		}
	}
	return s.c
}

// problem is a failing subtest; where -run filters it out, the test itself fails.
func (s *scope) problem(p session.Problem) {
	s.t.Helper()
	shown := false
	s.t.Run(p.Name, func(t *testing.T) {
		t.Helper()
		shown = true
		if p.Class != "" {
			t.Attr("parity.infra", p.Class)
		}
		t.Error(sanitize.Text(p.Text))
	})
	if !shown {
		s.t.Errorf("%s: %s", p.Name, sanitize.Text(p.Text))
	}
	s.failed = true
}

// end is the last clean-up of the test.
func (s *scope) end() {
	s.t.Helper()
	s.session.Scopes.Delete(s.t)
	if s.fixture != nil {
		s.fixture.Tested(s.c, s.t.Name(), s.failed, len(s.told) > 0)
	}
	if s.t.Skipped() {
		return
	}
	if s.declared > 0 && s.ran == 0 && !s.failed {
		why := "the filter of go test -run hits none"
		if setting.TestFlag("test.failfast") == "true" {
			why = "-failfast ended the tests before any, or " + why
		}
		s.t.Errorf("parity: %s of the %d layers of %s: nothing was compared", why, s.declared, s.t.Name())
	}
}
