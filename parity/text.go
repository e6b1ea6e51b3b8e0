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
// that is judged was given the reference's ids.
func Text(t *testing.T) *TextAssertion {
	t.Helper()
	return &TextAssertion{newAssertion(t, "parity.Text(t)", nil)}
}

// TextAssertion is a choice of all texts. It does nothing until Check runs it.
type TextAssertion struct{ a *Assertion }

// Check compares the texts of each case, in subtests text:chat/CASE for each API path that the
// candidate has. It reports whether all are equal. A fixture of which no text can be judged fails:
// its cases have token ids alone, its goldens were made before texts were kept, or the candidate
// tells none.
func (x *TextAssertion) Check() bool {
	t, s := x.a.t, x.a.scope
	t.Helper()
	if x.a.done {
		t.Fatalf("%s of %s was ended twice: one terminal runs it", x.a.call, x.a.line)
	}
	x.a.done = true
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
	s.failed = s.failed || !ok
	return ok
}
