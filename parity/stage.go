package parity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
)

// Stage is what is judged besides the layers of one pass. It does nothing until Check runs it.
type Stage struct {
	a     *Assertion
	stage string
	items func(*Stage, *scope) stageItems
	n     int // tokens of a generation
	asked session.Serving
}

// stageItems are what a stage judges.
type stageItems struct {
	list []stageItem
	none string // why there are none
	skip string // why no one can judge them here, in a subtest of the stage's name; empty: they are judged
}

// stageItem is one thing that a stage judges, in a subtest. Several of one name share it.
type stageItem struct {
	names  []string // of the subtest, and before it of those that it is in
	status report.Status
	text   string
	attrs  [][2]string
	judge  func(*testing.T) // judges when the subtest runs, in place of status
}

func newStage(t *testing.T, name, stage string, items func(*Stage, *scope) stageItems) *Stage {
	t.Helper()
	return &Stage{a: newAssertion(t, "parity."+name+"(t)", nil), stage: stage, items: items}
}

// of refuses an option of another stage.
func (x *Stage) of(name, option string) {
	if x.a.call != "parity."+name+"(t)" {
		x.a.wrong("%s is of parity.%s", option, name)
	}
}

// Steps judges the first n tokens of each text of [Generation] only. Without it all are judged that the golden has.
func (x *Stage) Steps(n int) *Stage {
	if x.of("Generation", fmt.Sprintf("Steps(%d)", n)); n < 1 {
		x.a.wrong("Steps(%d): want how many tokens are judged, from 1", n)
	}
	x.n = n
	return x
}

// URL has [Served] ask the server at this address, http://HOST:PORT, in place of the fixture's own.
func (x *Stage) URL(url string) *Stage {
	x.of("Served", "URL")
	x.asked.URL = url
	return x
}

// Timeout is how long an answer of [Served] may take; 30 s if it is not set.
func (x *Stage) Timeout(d time.Duration) *Stage {
	x.of("Served", "Timeout")
	x.asked.Timeout = d
	return x
}

// Check judges each thing in a subtest, and reports whether all passed. A stage of which nothing can be judged fails;
// one that needs a live run is skipped where a recorded run is judged.
func (x *Stage) Check() bool {
	t, s := x.a.t, x.a.scope
	t.Helper()
	x.a.begin()
	of := x.items(x, s)
	if of.skip != "" {
		return t.Run(x.stage, func(t *testing.T) { t.Skip(of.skip) })
	}
	if !slices.ContainsFunc(of.list, func(i stageItem) bool { return i.status != report.NotJudged }) {
		var why []string
		for _, i := range of.list {
			why = append(why, sanitize.Line(i.text))
		}
		t.Fatalf("%s: fixture %s: nothing was judged: %s", x.a.call, s.fixture.Name(), cmp.Or(strings.Join(why, "; "), of.none))
	}
	s.declared++
	ok := s.subtests(t, of.list)
	s.failed = s.failed || !ok
	return ok
}

// subtests judges things, those of one name in one subtest.
func (s *scope) subtests(t *testing.T, list []stageItem) bool {
	t.Helper()
	var order []string
	by := map[string][]stageItem{}
	for _, i := range list {
		name := i.names[0]
		if by[name] == nil {
			order = append(order, name)
		}
		i.names = i.names[1:]
		by[name] = append(by[name], i)
	}
	ok := true
	for _, name := range order {
		ok = t.Run(sanitize.Name(name), func(t *testing.T) {
			t.Helper()
			if len(by[name][0].names) > 0 {
				s.subtests(t, by[name])
				return
			}
			for _, i := range by[name] {
				s.judge(t, i, len(by[name]) == 1)
			}
		}) && ok
	}
	return ok
}

// judge judges a thing in its subtest, alone or with others.
func (s *scope) judge(t *testing.T, i stageItem, alone bool) {
	t.Helper()
	if i.judge != nil {
		i.judge(t)
		return
	}
	s.ran++
	for _, a := range i.attrs {
		t.Attr(a[0], a[1])
	}
	switch text := sanitize.Text(i.text); {
	case i.status == report.StatusPass:
	case i.status != report.NotJudged && i.status != report.StatusIgnored:
		t.Error(text)
	case alone:
		t.Skip(text)
	default:
		t.Log(text)
	}
}
