package parity

// Hypothesis is one mistake, or a family of them, that explains why a layer computes something
// else. Yours, which TestMain names with testmain.Hypotheses, are tried before those that are built
// in (docs/causes.md). It looks at a Scene, the place of the first divergence, and predicts what
// the candidate would have computed at Scene.Target if the mistake had been made. A prediction is
// proven when the candidate agrees with it within the port's noise floor, and at least 8 times
// better than with the golden.
//
//	fit        = ‖c − p‖ / ‖p‖   candidate c, prediction p
//	fit_golden = ‖c − g‖ / ‖g‖   golden g
//
// Predict the candidate's tensors from its own (Scene.Actual), so that the prediction is as good
// downstream of other errors; try the same calculation without the mistake on the golden ones
// (Scene.Golden) first, and predict nothing where it does not give the golden target.
type Hypothesis interface {
	// Predict returns no prediction where the hypothesis does not apply. A panic is reported as a
	// note, and ends this hypothesis only.
	Predict(s *Scene) []Prediction
}

// HypothesisFunc is a hypothesis that is one function.
type HypothesisFunc func(s *Scene) []Prediction

// Predict calls the function.
func (f HypothesisFunc) Predict(s *Scene) []Prediction { return f(s) }

// Prediction is what a candidate with one mistake would have computed.
type Prediction struct {
	ID   string // of the cause: "activation/quick-gelu"
	Text string // what the candidate does: "quick GELU, x·σ(1.702·x), in place of GELU"

	// Value is the candidate's tensor at Scene.Target, in its shape. nil for a guess: a pattern
	// that names a cause and predicts no numbers. A NaN predicts a NaN.
	Value *Array

	// Params is how many numbers were taken from the candidate to make the prediction: 1 for a
	// scale that was fitted. The choice among a few known variants costs nothing.
	Params int

	// Rows marks the rows of the target that are predicted; nil for all. The others are not looked
	// at; at least half of the rows must be predicted for a proof.
	Rows []bool

	Layer string // where the mistake is, if not in Scene.Layer

	// Rank orders guesses, and predictions that fit alike with as many Params: the smaller first. 0
	// is usual.
	Rank int
}

// Fits says how well a calculation of your own fits a layer's output: relative L2 over the rows
// that are not padding. A NaN that both sides have counts as equal.
type Fits struct {
	Candidate float64 // ‖c − p(x_c)‖ / ‖p(x_c)‖: from the candidate's inputs, against the candidate
	Golden    float64 // ‖p(x_g) − g‖ / ‖g‖: from the golden inputs, against the golden
	Between   float64 // ‖c − g‖ / ‖g‖: the candidate against the golden
	Proven    bool    // the calculation explains the candidate: the rule by which causes are proven
	Right     bool    // the calculation does what the reference does, within the noise floor
}
