package parity

import (
	"testing"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
)

// Generation chooses the texts that follow the cases, as fixture.yaml asks for them by generation: the
// candidate is forced along the reference's greedy text, with its cache. Every token must be the
// reference's, or a tie within the noise of the encoding, and the logits that decide it within their tolerance. Subtests
// are generation/CASE. A golden that decides too few of its tokens fails.
func Generation(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Generation", (*Stage).generation)
}

func (g *Stage) generation() bool {
	t, s := g.a.t, g.a.scope
	t.Helper()
	texts := s.fixture.Generations(s.open())
	if len(texts) == 0 {
		t.Fatalf("%s: fixture %s asks for no generation: write generation: 32 in its fixture.yaml", g.a.call, s.fixture.Name())
	}
	s.declared++
	return t.Run("generation", func(t *testing.T) {
		t.Helper()
		for _, text := range texts {
			t.Run(foreign.Name(text.Case), func(t *testing.T) {
				t.Helper()
				s.ran++
				g.text(t, text)
			})
		}
	})
}

// text judges one text in its subtest.
func (g *Stage) text(t *testing.T, text *session.Generation) {
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
