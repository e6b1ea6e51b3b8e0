package parity

import (
	"testing"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
)

// Generation chooses the texts that follow the cases, as fixture.yaml asks for them by generation: the
// candidate is forced along the reference's greedy text, with its cache, and every token must be the
// reference's, or a tie within the noise of the encoding.
func Generation(t *testing.T) *GenerationAssertion {
	t.Helper()
	return &GenerationAssertion{a: newAssertion(t, "parity.Generation(t)", nil)}
}

// GenerationAssertion is a choice of the first tokens of all texts. It does nothing until Check runs it.
type GenerationAssertion struct {
	a *Assertion
	n int
}

// Steps judges the first n tokens of each text only. Without it all are judged that the golden has.
func (g *GenerationAssertion) Steps(n int) *GenerationAssertion {
	if n < 1 {
		g.a.wrong("Steps(%d): want how many tokens are judged, from 1", n)
	}
	g.n = n
	return g
}

// Check judges each text in a subtest generation/CASE. It reports whether all passed: every token is the
// reference's or a tie, and the logits that decide it are within their tolerance. A golden that decides
// too few of its tokens fails.
func (g *GenerationAssertion) Check() bool {
	t, s := g.a.t, g.a.scope
	t.Helper()
	if g.a.done {
		t.Fatalf("%s of %s was ended twice: one terminal runs it", g.a.call, g.a.line)
	}
	g.a.done = true
	if g.a.misuse != nil {
		t.Fatalf("%s.%v", g.a.call, g.a.misuse)
	}
	texts := s.fixture.Generations(s.open())
	if len(texts) == 0 {
		t.Fatalf("%s: fixture %s asks for no generation: write generation: 32 in its fixture.yaml", g.a.call, s.fixture.Name())
	}
	s.declared++
	ok := t.Run("generation", func(t *testing.T) {
		t.Helper()
		for _, text := range texts {
			t.Run(foreign.Name(text.Case), func(t *testing.T) {
				t.Helper()
				s.ran++
				g.text(t, text)
			})
		}
	})
	s.failed = s.failed || !ok
	return ok
}

// text judges one text in its subtest.
func (g *GenerationAssertion) text(t *testing.T, text *session.Generation) {
	t.Helper()
	o, err := text.Judge(g.n)
	if err != nil {
		t.Error(foreign.Text(err.Error()))
		return
	}
	t.Attr("parity.generation", string(o.Verdict))
	if r := text.Report(); r.Verdict != report.Pass {
		t.Error(foreign.Text(report.Headline(r) + next(o)))
		return
	}
	t.Log(foreign.Text(o.Text()))
}

// next says how to find the layer, where the golden keeps none along the text.
func next(o *continuation.Outcome) string {
	if !o.Fails() {
		return ""
	}
	return "\n  the golden keeps no layers along the text: give the case steps, or compare dumps with parity generate, to see which layer is the first"
}
