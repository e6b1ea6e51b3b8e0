package parity

import (
	"errors"
	"strconv"
	"testing"

	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
)

// Served asks a server the fixture's cases, the one that fixture.yaml names in serve, or starts the
// one whose command stands there: any server of OpenAI's API, such as max serve. Its tokens, texts
// and log-probabilities must be the reference's. A server that would have to be started is skipped
// where the recorded run is judged: that needs no engine.
//
// It asks each case alone, then from the middle of its text, then all at once, then in further ways, and
// judges the answers in subtests serving/CASE/alone, …/prefix, …/at-once, …/stream, …/stop and so on; with draws
// one case has …/sampled,… for each setting, too. A server that gives no answer that can be judged fails as parity:infra.
func Served(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Served", (*Stage).served)
}

func (s *Stage) served() bool {
	t, scope := s.a.t, s.a.scope
	t.Helper()
	if scope.fixture == nil {
		t.Fatal("parity: TestMain names several fixtures: choose one with parity.Use(t, NAME)")
	}
	out, err := scope.fixture.Serve(s.asked)
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
	return t.Run("serving", func(t *testing.T) {
		t.Helper()
		s.cases(t, out)
	})
}

// cases judges each case in a subtest, and each way of asking it in one of that.
func (s *Stage) cases(t *testing.T, out *report.Serving) {
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

func (s *Stage) ways(t *testing.T, out *report.Serving, requests []*report.ServedRequest) {
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
