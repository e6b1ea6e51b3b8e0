package diagnose

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/goparity/goparity/internal/compare"
)

// Hypothesis is one mistake, or a family of them. It looks at a scene and predicts what the
// candidate's tensor at Scene.Target would be if the mistake had been made: nothing where it does not
// apply. It must not panic on tensors of any shape.
type Hypothesis func(s *Scene) []Prediction

// Prediction is what a candidate with one mistake would have computed.
type Prediction struct {
	ID   string // of the cause: "activation/quick-gelu"
	Text string // what the candidate does: "quick GELU, x·σ(1.702·x), in place of GELU"
	// Value is the candidate's tensor at Scene.Target, in its shape, or only those rows of it that
	// Rows marks. nil for a guess: a pattern that names a cause and predicts no numbers. A NaN
	// predicts a NaN.
	Value *Array
	// Params is how many numbers were taken from the candidate to make the prediction: 1 for a
	// scale that was fitted. A whole shift or the choice among a few known variants costs nothing.
	Params int
	// Rows marks the rows of the target that are predicted; nil for all. The others are not looked
	// at, and at least half of Scene.Sample must be predicted for a proof.
	Rows []bool
	// Rank orders guesses, and predictions that fit alike with as many Params: the smaller first. 0
	// is usual. A guess below 0 is sure of what it says, and comes before predictions that fit but
	// loosely.
	Rank int
}

// Diagnose looks for the cause at one place, until ctx ends. The causes come best first; the first
// may be proven.
func Diagnose(ctx context.Context, s *Scene, hypotheses []Hypothesis) []Cause {
	var causes []Cause
	s.ctx, s.unshown = ctx, nil
	for _, h := range hypotheses {
		if !s.Late() {
			causes = append(causes, s.try(h)...)
		}
	}
	if s.isRight() {
		for i := range causes {
			causes[i].Proven = false
		}
	}
	floor := compare.Limits{}
	if s.Target != nil {
		floor = s.Target.Floor
	}
	return rank(causes, s.unshown, floor.RelL2)
}

// isRight reports whether the candidate's target is what the reference makes of the candidate's own
// inputs, within the noise floor.
func (s *Scene) isRight() bool {
	t := s.Target
	if s.Made == nil || t == nil || t.Actual == nil {
		return false
	}
	rows := t.Kept(nil)
	made, actual := SelectRows(s.Made, rows), SelectRows(t.Actual, rows)
	if made == nil || actual == nil {
		return false
	}
	r, err := compare.Tensors(made, actual, compare.Tolerance{EqualNaN: true})
	return err == nil && r.Agrees(t.Floor)
}

// try judges the predictions of one hypothesis. One that panics predicts nothing: it must not take
// the report with it, nor must a file that was truncated under a mapped tensor.
func (s *Scene) try(h Hypothesis) (causes []Cause) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			s.fail(fmt.Errorf("a hypothesis failed: %v", e))
		}
	}()
	for _, p := range h(s) {
		switch c, ok := s.judge(p); {
		case ok:
			causes = append(causes, c)
		case !c.isGuess():
			s.unshown = append(s.unshown, c)
		}
	}
	return causes
}

func (s *Scene) fail(err error) {
	if err != nil && s.Failed != nil {
		s.Failed(err)
	}
}
