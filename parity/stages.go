package parity

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/weights"
)

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
