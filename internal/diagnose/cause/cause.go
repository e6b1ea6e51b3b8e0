// Package cause is the catalogue of what wrong numbers show by themselves, package pattern. What is an edit of the
// reference's program is in package edit.
//
// A new cause is a function there, a line in the catalogue and a row in docs/causes.md.
package cause

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/text"
)

// Cause is one kind of mistake, or several that are looked for together.
type Cause struct {
	ID    string   // of what it finds that has no other id
	Also  []string // the other ids that it finds
	Kinds []string // of verdicts in which it is looked for; nil for errors of a layer
	// One of these looks for it.
	Scene func(*diagnose.Scene) []diagnose.Prediction
	Pair  func(*pattern.Pair) []diagnose.Prediction // needs numbers on both sides
}

// Predict is Cause as a hypothesis.
func (c Cause) Predict(s *diagnose.Scene) (out []diagnose.Prediction) {
	if c.Scene != nil {
		return c.Scene(s)
	}
	if p := pattern.Of(s); p != nil {
		return c.Pair(p)
	}
	return nil
}

// For lists the hypotheses for a verdict's kind, the cheap and likely ones first. A kind that is a
// cause by itself has only those that say so with numbers: what looks like another one there
// follows from it.
func For(kind string) []diagnose.Hypothesis {
	byItself := []string{localise.KindInput, localise.KindInteraction, localise.KindDrift, localise.KindCapture}
	if !slices.Contains(byItself, kind) {
		kind = layer
	}
	var out []diagnose.Hypothesis
	for _, c := range catalogue {
		if c.Kinds == nil && kind == layer || slices.Contains(c.Kinds, kind) {
			out = append(out, c)
		}
	}
	return out
}

// IDs lists the ids of all causes. "config/<key>" stands for any key of a config.json.
func IDs() []string {
	// The first is found by what judges the runs of one prompt, internal/judge; text needs no tensors.
	ids := append([]string{"state/nondeterministic"}, text.IDs()...)
	for _, c := range catalogue {
		for _, id := range append([]string{c.ID}, c.Also...) {
			if strings.HasPrefix(id, "config/") {
				id = "config/<key>"
			}
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
