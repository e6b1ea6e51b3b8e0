package parity

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
)

// Served asks a server the fixture's cases, the one that fixture.yaml names in serve, or starts the
// one whose command stands there: any server of OpenAI's API, such as max serve. Its tokens, texts
// and log-probabilities must be the reference's. A server that would have to be started is skipped
// where the recorded run is judged: that needs no engine.
func Served(t *testing.T) *ServedAssertion {
	t.Helper()
	return &ServedAssertion{a: newAssertion(t, "parity.Served(t)", nil)}
}

// ServedAssertion is a choice of all cases, asked of a server. It does nothing until Check runs it.
type ServedAssertion struct {
	a *Assertion
	s session.Serving
}

// URL asks the server at this address, http://HOST:PORT, in place of the fixture's own.
func (s *ServedAssertion) URL(url string) *ServedAssertion { s.s.URL = url; return s }

// Model asks for the model of this name, which the server must have.
func (s *ServedAssertion) Model(name string) *ServedAssertion { s.s.Model = name; return s }

// Timeout is how long an answer may take; 30 s if it is not set.
func (s *ServedAssertion) Timeout(d time.Duration) *ServedAssertion { s.s.Timeout = d; return s }

// Parallel is how many requests are on their way at once, in the end; 4 if it is not set.
func (s *ServedAssertion) Parallel(n int) *ServedAssertion { s.s.Parallel = n; return s }

// Draws is how many tokens are drawn for each setting of sampling, from 50; none if neither it nor the fixture says.
func (s *ServedAssertion) Draws(n int) *ServedAssertion { s.s.Draws = n; return s }

// Check asks each case alone, then from the middle of its text, then all at once, then in further ways, and
// judges the answers in subtests serving/CASE/alone, …/prefix, …/at-once, …/stream, …/stop and so on; with draws
// one case has …/sampled,… for each setting, too. It reports whether all passed. A server that gives no answer that
// can be judged fails as parity:infra.
func (s *ServedAssertion) Check() bool {
	t, scope := s.a.t, s.a.scope
	t.Helper()
	if s.a.done {
		t.Fatalf("%s of %s was ended twice: one terminal runs it", s.a.call, s.a.line)
	}
	s.a.done = true
	if scope.fixture == nil {
		t.Fatal("parity: TestMain names several fixtures: choose one with parity.Use(t, NAME)")
	}
	out, err := scope.fixture.Serve(s.s)
	if errors.Is(err, session.ErrNotLive) {
		return t.Run("serving", func(t *testing.T) { t.Skip(err) })
	}
	if err != nil {
		scope.problem(session.Trouble(err))
		t.FailNow()
	}
	scope.served = append(scope.served, out)
	if out.Verdict == report.Error {
		scope.problem(session.Problem{Name: "parity:infra", Text: out.Error})
		t.FailNow()
	}
	scope.declared++
	ok := t.Run("serving", func(t *testing.T) {
		t.Helper()
		s.cases(t, out)
	})
	scope.failed = scope.failed || !ok
	return ok
}

// cases judges each case in a subtest, and each way of asking it in one of that.
func (s *ServedAssertion) cases(t *testing.T, out *report.Serving) {
	t.Helper()
	var names []string
	by := map[string][]*report.ServedRequest{}
	for i := range out.Requests {
		r := &out.Requests[i]
		if by[r.Case] == nil {
			names = append(names, r.Case)
		}
		by[r.Case] = append(by[r.Case], r)
	}
	for _, name := range names {
		t.Run(foreign.Name(name), func(t *testing.T) {
			t.Helper()
			s.ways(t, out, by[name])
		})
	}
}

func (s *ServedAssertion) ways(t *testing.T, out *report.Serving, requests []*report.ServedRequest) {
	t.Helper()
	var ways []string
	by := map[string][]*report.ServedRequest{}
	for _, r := range requests {
		if by[r.Way] == nil {
			ways = append(ways, r.Way)
		}
		by[r.Way] = append(by[r.Way], r)
	}
	for _, way := range ways {
		t.Run(foreign.Name(way), func(t *testing.T) {
			t.Helper()
			s.a.scope.ran++
			for _, r := range by[way] {
				switch r.Status {
				case report.StatusPass:
					continue
				case report.StatusIgnored:
					t.Log(foreign.Text(r.String()))
					continue
				}
				t.Attr("parity.token", strconv.Itoa(r.Right))
				if len(out.Causes) > 0 {
					t.Attr("parity.cause", foreign.Line(out.Causes[0].ID))
				}
				t.Error(foreign.Text(r.String()))
			}
		})
	}
}
