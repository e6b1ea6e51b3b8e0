package diagnose

// The limits of a proof, and of the time that it takes. Measured in the zoo, November 2026:
// internal/exam/thresholds.md. Besides, a proven prediction fits to the port's noise floor: right ones come
// to 0.68 of it in 16 bits and 0.1 in float32.
const (
	// margin is how much better than the golden a proven prediction fits, at least. Right ones ≥
	// 25. Wrong ones that reach it say the same arithmetic in other words.
	margin = 8
	// loosely is how much better than the golden a prediction fits that is shown at all: it explains
	// 89 % of the squared error. It proves nothing: fits of wrong ones are continuous around it.
	loosely = 3
	// apart is how much nearer than the next one, of another id, a prediction is that fits but loosely:
	// else none of them is shown. Not measured.
	apart = 1.5
	// alike is the ratio up to which two fits say the same: rounding moves a fit by less. Fits of
	// the same arithmetic 1.0, of other > 10.
	alike = 3
	// belowFloor is the part of the noise floor under which all fits say the same. Right fits in
	// float32: 3e-4 to 0.017 of the floor.
	belowFloor = 0.1
	// PerParam is how many elements a fitted number needs to be believed. Right proofs ≥ 107; ≤ 23
	// where nothing may be proven, a bias that was learned per column.
	PerParam = 32

	shown       = 5       // causes of a place that are kept
	shownLoose  = 2       // of them those that fit but loosely
	sampleFrom  = 1 << 20 // elements from which a target is sampled
	sampleKeep  = 1 << 19 // elements that are kept then, in whole rows
	sampleLeast = 32      // rows that are kept at least: of logits 32 are many megabytes
)
