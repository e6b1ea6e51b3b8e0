package diagnose

// Hypothesis is one mistake, or a family of them. It looks at a scene and predicts what the
// candidate's tensor at Scene.Target would be if the mistake had been made.
type Hypothesis interface {
	// Predict returns no prediction where the hypothesis does not apply. It must not panic on
	// tensors of any shape.
	Predict(s *Scene) []Prediction
}

// Func is a hypothesis that is one function.
type Func func(s *Scene) []Prediction

// Predict calls the function.
func (f Func) Predict(s *Scene) []Prediction { return f(s) }

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
	// Layer is where the mistake is, if not in Scene.Layer.
	Layer string
	// Rank orders guesses, and predictions that fit alike with as many Params: the smaller first. 0
	// is usual. A guess below 0 is sure of what it says, and comes before predictions that fit but
	// loosely.
	Rank int
}
