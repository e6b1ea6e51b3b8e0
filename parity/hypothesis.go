package parity

import "github.com/goparity/goparity/internal/diagnose"

// Hypothesis is one mistake, or a family of them, that explains why a layer computes something else: beside those that are built in (docs/causes.md)
// yours are tried first, where TestMain names them with testmain.Hypotheses. It looks at a Scene, the place of the first divergence, and predicts
// what the candidate would have computed at Scene.Target if the mistake had been made. A prediction is proven when the candidate
// agrees with it within the port's noise floor, and at least 8 times better than with the golden.
//
//	fit        = ‖c − p‖ / ‖p‖   candidate c, prediction p
//	fit_golden = ‖c − g‖ / ‖g‖   golden g
//
// Predict the candidate's tensors from its own (Scene.Actual), so that the prediction is as good downstream of other errors; try the
// same calculation without the mistake on the golden ones (Scene.Golden) first, and predict nothing where it does not give the golden target.
type Hypothesis = diagnose.Hypothesis

// HypothesisFunc is a hypothesis that is one function.
type HypothesisFunc = diagnose.Func

// Scene is what a hypothesis is given: the wrong tensor, all recorded ones of the forward pass on both sides, weights and config where they are known.
type Scene = diagnose.Scene

// Prediction is what a hypothesis says: the id of the cause, a sentence, the candidate's tensor if the mistake was made, and how many numbers
// were taken from the candidate to make it.
type Prediction = diagnose.Prediction

// Array is a tensor in float64, row-major.
type Array = diagnose.Array
