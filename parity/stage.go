package parity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/weights"
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
	names, by := grouped(list, func(i stageItem) string { return i.names[0] })
	ok := true
	for _, name := range names {
		of := by[name]
		for k := range of {
			of[k].names = of[k].names[1:]
		}
		ok = t.Run(sanitize.Name(name), func(t *testing.T) {
			t.Helper()
			if len(of[0].names) > 0 {
				s.subtests(t, of)
				return
			}
			for _, i := range of {
				s.judge(t, i, len(of) == 1)
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

// Text chooses what the candidate's own tokenizer and template make of the fixture's prompts and
// messages: the text after the template and the token ids must be the reference's, though the run
// that is judged was given the reference's ids. Its subtests are text:chat/CASE for each API path that the
// candidate has. It fails where no text can be judged: the cases have token ids alone, the goldens were made
// before texts were kept, or the candidate tells none.
func Text(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Text", report.StageText, func(x *Stage, s *scope) (of stageItems) {
		rows, _ := s.open().Texts()
		for _, r := range rows {
			of.list = append(of.list, stageItem{names: []string{report.TextTest(r.Path), r.Case}, status: r.Status, text: r.Text})
		}
		of.none = "the candidate's run brings no text: a case needs a prompt or messages, and an engine of your own writes text to its run.json"
		return of
	})
}

// Weights chooses all weights that the candidate's engine loaded: each must be that of the fixture's model folder, or
// that after steps that hold for all weights of its role, such as a cast or rows in another order. Its subtests are
// weights/NAME. A recorded run has no weights: then it is skipped.
func Weights(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Weights", report.StageWeights, func(x *Stage, s *scope) (of stageItems) {
		list, why := s.open().Loaded()
		for _, w := range list {
			i := stageItem{names: []string{report.StageWeights, cmp.Or(w.Reference, w.Candidate)}, status: report.StatusPass, text: w.String()}
			switch {
			case !w.Good():
				i.status = report.StatusFail
			case w.Status == weights.Ignored:
				i.status = report.StatusIgnored
			}
			of.list = append(of.list, i)
		}
		of.none = cmp.Or(sanitize.Text(strings.Join(why, "; ")), "the candidate's run brings none: an engine of your own lists the files of what it "+
			"loaded as weights in its run.json; weights: off in fixture.yaml, and more than 1 GB, keep none")
		if len(list)+len(why) == 0 && s.fixture.Mode() == setting.RunReplay {
			of.skip = "a recorded run has no weights: they are judged in a live run, go test -parity.run=cpu"
		}
		return of
	})
}

// Paths chooses the fixture's execution paths: the candidate runs the same tokens in other ways, as fixture.yaml lists
// them in paths, and every layer must have in each row what the golden has, by the fixture's tolerances, or else the
// defaults. Its subtests are path:decode-8/LAYER/CASE. A path that the engine did not take, or that no case is long
// enough for, fails.
func Paths(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Paths", report.StagePaths, func(x *Stage, s *scope) (of stageItems) {
		for _, path := range s.fixture.Paths(s.open()) {
			of.list = append(of.list, stageItem{names: []string{report.PathTest(path.Name)}, judge: func(t *testing.T) {
				t.Helper()
				x.path(t, path)
			}})
		}
		of.none = "it lists no execution paths: write paths: [decode, batch, …] in its fixture.yaml"
		return of
	})
}

// Generation chooses the texts that follow the cases, as fixture.yaml asks for them by generation: the
// candidate is forced along the reference's greedy text, with its cache, and every token must be the
// reference's, or a tie within the noise of the encoding, with logits that are within their tolerance. Its subtests are
// generation/CASE. A golden that decides too few of its tokens fails.
func Generation(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Generation", report.StageGeneration, func(x *Stage, s *scope) (of stageItems) {
		for _, text := range s.fixture.Generations(s.open()) {
			of.list = append(of.list, stageItem{names: []string{report.StageGeneration, text.Case}, judge: func(t *testing.T) {
				t.Helper()
				s.ran++
				x.text(t, text)
			}})
		}
		of.none = "it asks for no generation: write generation: 32 in its fixture.yaml"
		return of
	})
}

// text judges one text in its subtest.
func (x *Stage) text(t *testing.T, text *session.Generation) {
	t.Helper()
	o, err := text.Judge(x.n)
	if err != nil {
		t.Error(sanitize.Text(err.Error()))
		return
	}
	t.Attr("parity.generation", string(o.Verdict))
	r := text.Report()
	if r.Verdict == report.Pass {
		t.Log(sanitize.Text(o.Text()))
		return
	}
	why := report.Headline(r)
	if o.Fails() {
		why += "\n  the golden keeps no layers along the text: give the case steps, or compare dumps that have layers with parity compare, to see which " +
			"layer is the first"
	}
	t.Error(sanitize.Text(why))
}

// Served asks a server the fixture's cases, the one that fixture.yaml names in serve, or starts the
// one whose command stands there: any server of OpenAI's API, such as max serve. Its tokens, texts
// and log-probabilities must be the reference's. Each case is asked alone, then from the middle of its text, then all
// at once, then in further ways: its subtests are serving/CASE/alone, …/prefix, …/at-once, …/stream, …/stop and so on;
// with draws one case has …/sampled,… for each setting, too. A server that gives no answer that can be judged fails as
// parity:infra. One that would have to be started is skipped where the recorded run is judged: that needs no engine.
func Served(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Served", report.StageServing, func(x *Stage, s *scope) (of stageItems) {
		s.chosen()
		out, err := s.fixture.Serve(x.asked)
		switch {
		case errors.Is(err, session.ErrNotLive):
			of.skip = err.Error()
			return of
		case err != nil:
			s.problem(session.Trouble(err))
			s.t.FailNow()
		}
		if out.Verdict == report.Error {
			s.problem(session.Problem{Name: "parity:infra", Text: out.Error})
			s.t.FailNow()
		}
		for i := range out.Requests {
			of.list = append(of.list, answer(out, &out.Requests[i]))
		}
		of.none = "the server was asked nothing"
		return of
	})
}

// answer is what came of a request to a server.
func answer(out *report.Serving, r *report.ServedRequest) stageItem {
	i := stageItem{names: []string{report.StageServing, r.Case, r.Way}, status: r.Status, text: r.String()}
	if r.Status != report.StatusPass && r.Status != report.StatusIgnored {
		i.attrs = [][2]string{{"parity.token", strconv.Itoa(r.Right)}}
		if len(out.Causes) > 0 {
			i.attrs = append(i.attrs, [2]string{"parity.cause", sanitize.Line(out.Causes[0].ID)})
		}
	}
	return i
}

// path judges one execution path in its subtest.
func (p *Stage) path(t *testing.T, path *session.Path) {
	t.Helper()
	along, err := path.Judge()
	if err != nil {
		p.a.scope.ran++
		t.Error(sanitize.Text(err.Error()))
		return
	}
	ok := true
	if c := along.Along; c != nil {
		holds := along.OnePassHolds()
		for _, l := range c.Layers.Judged() {
			ok = t.Run(sanitize.Name(l), func(t *testing.T) {
				t.Helper()
				p.a.layer(t, c, l, caseOf, func(t *testing.T, r judge.LayerRun) string {
					t.Helper()
					return p.pass(t, c, r, holds)
				})
			}) && ok
		}
		if open := c.Demand(); len(open) > 0 {
			ok = p.says(t, "parity:coverage", strings.Join(open, "\n")+"\n"+report.OpenHelp, nil) && ok
		}
	}
	// What no layer shows by itself: other tokens, or a second run that is not the first.
	if !ok {
		return
	}
	if r := path.Report(); r.Verdict != report.Pass {
		var first *report.Row
		if r.FirstDivergence != nil {
			first = r.FirstDivergence.Row
		}
		p.says(t, "parity:path", report.Headline(r), first)
	}
}

// says is a failing subtest, about a row where that is known.
func (p *Stage) says(t *testing.T, name, text string, row *report.Row) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		t.Helper()
		p.a.scope.ran++
		attributesOf(t, row)
		t.Error(sanitize.Text(text))
	})
}

// caseOf names a subtest for each case.
func caseOf(r judge.LayerRun) string {
	name, _ := dump.CutPathCase(r.Case)
	return cmp.Or(name, "all")
}

// pass judges a forward pass of a layer; one that fails inherits that from the one pass if that is wrong, too.
func (p *Stage) pass(t *testing.T, c *judge.Comparison, r judge.LayerRun, onePassHolds bool) (unjudged string) {
	t.Helper()
	if onePassHolds || !slices.ContainsFunc(r.Judged, (*judge.Port).Fails) {
		return p.a.judge(t, c, r, nil)
	}
	p.a.scope.ran++
	for _, port := range r.Judged {
		port.Decide(nil, "", false)
	}
	p.a.inherit(t, "one pass, which is wrong too: see the layers there")
	return ""
}
