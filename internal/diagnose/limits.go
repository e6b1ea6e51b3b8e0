package diagnose

// The limits of a proof, and of the time that it takes.
const (
	// margin is how much better than the golden a proven prediction fits, at least. A prediction that
	// is half as far as the golden is shown, one that is an eighth as far is believed.
	margin = 8
	// loosely is how much better than the golden a prediction fits that is shown at all.
	loosely = 2
	// alike is the ratio up to which two fits say the same: rounding moves a fit by less.
	alike = 3
	// belowFloor is the part of the noise floor under which all fits say the same.
	belowFloor = 0.1
	// PerParam is how many elements a fitted number needs to be believed.
	PerParam = 32
	// shown is how many causes of a place are kept, shownLoose how many of them may fit but loosely.
	shown, shownLoose = 5, 2
	// sampleFrom is the size in elements from which a target is sampled, sampleKeep how many elements
	// are kept then, in at least sampleLeast whole rows.
	sampleFrom, sampleKeep, sampleLeast = 1 << 20, 1 << 19, 128
)
