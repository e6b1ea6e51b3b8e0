// Package cause is the catalogue of what goes wrong in a port of a model. Package fault has the
// causes that are an op done wrong, package pattern those that the numbers show by themselves.
//
// A new cause is a function there, a line in the catalogue and a row in docs/causes.md.
package cause

import (
	"github.com/goparity/goparity/internal/text"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/fault"
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/localise"
)

// Cause is one kind of mistake, or several that are looked for together.
type Cause struct {
	ID    string   // of what it finds that has no other id
	Also  []string // the other ids that it finds
	Kinds []string // of verdicts in which it is looked for; nil for errors of a layer
	// One of these looks for it.
	Scene func(*diagnose.Scene) []diagnose.Prediction
	Pair  func(*pattern.Pair) []diagnose.Prediction // needs numbers on both sides
	Op    func(*rebuild.Value) []rebuild.Fault      // needs an op that was found out
}

// of makes Op of a function of one kind of op.
func of[O rebuild.Op](faults func(O) fault.List) func(*rebuild.Value) []rebuild.Fault {
	return func(v *rebuild.Value) []rebuild.Fault {
		if o, ok := v.Op.(O); ok {
			return faults(o)
		}
		return nil
	}
}

// Predict is Cause as a hypothesis, if it is no fault of an op.
func (c Cause) Predict(s *diagnose.Scene) (out []diagnose.Prediction) {
	if c.Scene != nil {
		return c.Scene(s)
	}
	if p := pattern.Of(s); p != nil {
		return c.Pair(p)
	}
	return nil
}

// ops are the causes that are faults of ops. They are tried together: at each op the best faults of
// all.
type ops []Cause

// Predict tries them.
func (o ops) Predict(s *diagnose.Scene) []diagnose.Prediction {
	g := rebuild.Of(s)
	if g == nil {
		return nil
	}
	return g.Predict(func(v *rebuild.Value) (out []rebuild.Fault) {
		for _, c := range o {
			for _, f := range c.Op(v) {
				if f.ID == "" {
					f.ID = c.ID
				}
				out = append(out, f)
			}
		}
		return out
	})
}

// FaultFree is what the reference makes of the candidate's own inputs.
func (o ops) FaultFree(s *diagnose.Scene) *diagnose.Prediction {
	if g := rebuild.Of(s); g != nil {
		return g.FaultFree()
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
	var together ops
	at := 0
	for _, c := range catalogue {
		switch {
		case c.Kinds == nil && kind != layer, c.Kinds != nil && !slices.Contains(c.Kinds, kind):
		case c.Op == nil:
			out = append(out, c)
		default:
			if together == nil {
				at = len(out)
			}
			together = append(together, c)
		}
	}
	if together != nil {
		out = slices.Insert(out, at, diagnose.Hypothesis(together))
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
