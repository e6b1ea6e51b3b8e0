package parity

import (
	"fmt"
	"testing"
	"time"

	"github.com/goparity/goparity/internal/session"
)

// Stage is what is judged besides the layers of one pass. It does nothing until Check runs it.
type Stage struct {
	a     *Assertion
	judge func(*Stage) bool
	only  string // the one stage that has options
	n     int    // tokens of a generation
	asked session.Serving
}

func newStage(t *testing.T, name string, judge func(*Stage) bool) *Stage {
	t.Helper()
	return &Stage{a: newAssertion(t, "parity."+name+"(t)", nil), judge: judge, only: name}
}

// Check judges the stage, in subtests of its own. It reports whether all passed; a stage of which nothing can be judged
// fails.
func (s *Stage) Check() bool {
	s.a.t.Helper()
	s.a.begin()
	ok := s.judge(s)
	s.a.scope.failed = s.a.scope.failed || !ok
	return ok
}

// of refuses an option of another stage.
func (s *Stage) of(name, option string) {
	if s.only != name {
		s.a.wrong("%s is of parity.%s", option, name)
	}
}

// Steps judges the first n tokens of each text of [Generation] only. Without it all are judged that the golden has.
func (s *Stage) Steps(n int) *Stage {
	if s.of("Generation", fmt.Sprintf("Steps(%d)", n)); n < 1 {
		s.a.wrong("Steps(%d): want how many tokens are judged, from 1", n)
	}
	s.n = n
	return s
}

// URL has [Served] ask the server at this address, http://HOST:PORT, in place of the fixture's own.
func (s *Stage) URL(url string) *Stage {
	s.of("Served", "URL")
	s.asked.URL = url
	return s
}

// Timeout is how long an answer of [Served] may take; 30 s if it is not set.
func (s *Stage) Timeout(d time.Duration) *Stage {
	s.of("Served", "Timeout")
	s.asked.Timeout = d
	return s
}
