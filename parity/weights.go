package parity

import (
	"strings"
	"testing"

	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/weights"
)

// Weights chooses all weights that the candidate's engine loaded: each must be the reference's, or the
// reference's after steps that hold for all weights of its role, such as a cast or rows in another
// order. Subtests are weights/NAME. A recorded run has no weights: then it is skipped, and a
// live run of which none can be judged fails.
func Weights(t *testing.T) *Stage {
	t.Helper()
	return newStage(t, "Weights", (*Stage).weights)
}

func (w *Stage) weights() bool {
	t, s := w.a.t, w.a.scope
	t.Helper()
	c := s.open()
	list, why := c.Loaded()
	if len(list) == 0 {
		text := strings.Join(why, "; ")
		if text == "" {
			text = "the candidate's run brings none: an engine of your own lists the files of what it loaded as weights in its run.json; " +
				"weights: off in fixture.yaml, and more than 1 GB, keep none"
		}
		if len(why) == 0 && s.fixture.Mode() == setting.RunReplay {
			return t.Run("weights", func(t *testing.T) {
				t.Skip("a recorded run has no weights: they are judged in a live run, go test -parity.run=cpu")
			})
		}
		t.Fatalf("%s: fixture %s: no weights were judged: %s", w.a.call, s.fixture.Name(), foreign.Text(text))
	}
	s.declared++
	return t.Run("weights", func(t *testing.T) {
		t.Helper()
		for _, x := range list {
			t.Run(foreign.Name(name(x)), func(t *testing.T) {
				t.Helper()
				s.ran++
				switch {
				case !x.Good():
					t.Error(foreign.Text(x.String()))
				case x.Status == weights.Ignored:
					t.Skip(foreign.Text(x.String()))
				}
			})
		}
	})
}

// name is by which a weight is called in a subtest.
func name(w weights.Result) string {
	if w.Reference == "" {
		return w.Candidate
	}
	return w.Reference
}
