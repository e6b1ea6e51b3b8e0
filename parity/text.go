package parity

import (
	"strings"
	"testing"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
)

// Text chooses what the candidate's own tokenizer and template make of the fixture's prompts and
// messages: the text after the template and the token ids must be the reference's, though the run
// that is judged was given the reference's ids. Subtests are text:chat/CASE for each API path that the candidate has. It
// fails where no text can be judged: cases have token ids alone, the goldens keep no texts, or the candidate tells none.
func Text(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Text", (*Stage).texts)
}

func (x *Stage) texts() bool {
	t, s := x.a.t, x.a.scope
	t.Helper()
	rows, _ := s.open().Texts()
	ok, judged := true, false
	for _, row := range rows {
		s.declared++
		ok = t.Run("text:"+dump.Slug(row.Path)+"/"+foreign.Name(row.Case), func(t *testing.T) {
			t.Helper()
			s.ran++
			switch row.Status {
			case report.StatusFail:
				t.Error(foreign.Text(row.Text))
			case report.NotJudged:
				t.Skip(foreign.Text(row.Text))
			}
		}) && ok
		judged = judged || row.Status != report.NotJudged
	}
	if !judged {
		var why []string
		for _, row := range rows {
			why = append(why, foreign.Line(row.Text))
		}
		if len(why) == 0 {
			why = append(why, "the candidate's run brings no text: a case needs a prompt or messages, and an engine of your own writes text to its run.json")
		}
		t.Fatalf("%s: fixture %s: no text was judged: %s", x.a.call, s.fixture.Name(), strings.Join(why, "; "))
	}
	return ok
}
