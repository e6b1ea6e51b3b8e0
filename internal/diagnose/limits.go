package diagnose

// The limits of a proof, and of the time that it takes.
const (
	margin      = 8       // how much better than the golden a proven prediction fits, at least
	loosely     = 2       // how much better than the golden a prediction fits that is shown at all
	alike       = 3       // ratio up to which two fits say the same: rounding moves a fit by less
	belowFloor  = 0.1     // part of the noise floor under which all fits say the same
	PerParam    = 32      // elements that a fitted number needs to be believed
	shown       = 5       // causes of a place that are kept
	shownLoose  = 2       // of them those that fit but loosely
	sampleFrom  = 1 << 20 // elements from which a target is sampled
	sampleKeep  = 1 << 19 // elements that are kept then, in whole rows
	sampleLeast = 128     // rows that are kept at least
)
