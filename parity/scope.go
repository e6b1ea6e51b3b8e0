package parity

import (
	"testing"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

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
