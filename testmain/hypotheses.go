package testmain

import (
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/parity"
)

// Hypotheses adds causes of your own, which are tried first when a run fails: see
// parity.Hypothesis.
func Hypotheses(h ...parity.Hypothesis) Option {
	return optionFunc(func(c *session.Config) {
		for _, own := range h {
			c.Hypotheses = append(c.Hypotheses, diagnose.Func(func(s *diagnose.Scene) []diagnose.Prediction {
				return predictions(own.Predict(sceneOf(s)))
			}))
		}
	})
}

// sceneOf returns a scene as users' hypotheses see it.
func sceneOf(s *diagnose.Scene) *parity.Scene {
	out := &parity.Scene{Kind: s.Kind, Case: s.Case, Step: s.Step, Layer: s.Layer, After: s.After, Before: s.Before,
		Weights: s.Weights, Config: s.Config}
	for _, p := range s.Pass() {
		port := &parity.Port{Layer: p.Layer, Port: p.Port, Golden: p.Golden, Actual: p.Actual, Agrees: p.Agrees,
			PadRows: p.PadRows}
		if out.Ports = append(out.Ports, port); p == s.Target {
			out.Target = port
		}
	}
	return out
}

func predictions(own []parity.Prediction) []diagnose.Prediction {
	out := make([]diagnose.Prediction, len(own))
	for i, p := range own {
		out[i] = diagnose.Prediction{ID: p.ID, Text: p.Text, Value: (*diagnose.Array)(p.Value), Params: p.Params,
			Rows:  p.Rows,
			Layer: p.Layer, Rank: p.Rank}
	}
	return out
}
