package rebuild

// The limits of the work at one scene.
const (
	workLimit        = 6e9     // multiplications that a scene may cost: some seconds
	fullShare        = 3       // part of what is left that is kept for predictions in full
	attentionShare   = 4       // part of them that one attention may cost
	searchShare      = 8       // part of them that one search for a number may cost
	searchSteps      = 80      // evaluations of a search for a number
	searchRows       = 6       // rows on which a number is searched for
	rightWork        = 1e9     // multiplications of the right product, to compare with
	SampleRows       = 256     // rows on which a number is fitted
	ProbeRows        = 16      // rows on which a prediction must look good before it is made in full
	inFull           = 12      // predictions that are made in full
	sameID           = 3       // of them those of one cause
	coneSize         = 48      // values that are explained on the way to a target
	attentionRows    = 6       // rows on which an attention is looked for
	threeTerms       = 40      // values up to which three that add up to one are looked for inside of a block
	termRows         = 12      // rows that tell which tensors make up another
	termColumns      = 24      // columns that do
	modulationRows   = 6       // rows that tell a modulation
	learnRows        = 64      // rows of which a norm's weight is learned
	learnLeast       = 6       // rows without which it is not
	learnPlane       = 1 << 20 // elements of an image up to which the weights of a group norm are learned
	normsLearned     = 32      // other norms whose weights are learned
	learnInputs      = 512     // inputs of a learned linear layer, at most
	learnOutputs     = 2048    // outputs of one, at most
	masksTried       = 6       // tensors that are tried as a mask
	windowsTried     = 128     // the widest sliding window that is tried where no mask was recorded
	settingsTried    = 24      // ways of attention that are tried with windows
	attentionsFitted = 12      // ways of attention whose scale is fitted, the nearest first
	fitRounds        = 24      // of fitting the scale and what bends the scores in turn
	gatedMost        = 40      // values up to which products with an activation are tried
	partsLeast       = 2       // parts of an adaLN projection
	partsMost        = 12      // parts of one, at most
	mostBend         = 64      // how many times the largest logit a soft cap of them may be
	partialThetas    = 2       // thetas that are tried where a part of each head may be rotated
	turnedElements   = 24      // elements that tell whether a value is another one with its axes exchanged
	widestHead       = 32      // elements of a head up to which every number is tried
	widestKernel     = 16      // of a causal convolution, whose input is that much longer than what it makes
	mostClass        = 8       // tokens in front of the patches of an image, at most
	mostBiases       = 64      // weights up to which a bias without a layer is looked for
	mostArranged     = 512     // rows of an expert up to which their tokens are looked for
	mostChosen       = 64      // experts that a row may choose, at most
)

// Sizes of errors, relative to what they are of. Measured in the zoo, November 2026:
// docs/thresholds.md.
const (
	// freely is the factor by which a sum with a fitted number must fit better than one without.
	// Right ones miss by 0.01 of the noise, wrong ones by 24 times it.
	freely = 8
	// noFactor is the smallest factor of a term. Where there is none 0, else ≥ 0.5.
	noFactor = 1e-3
	// looksGood is the part of the golden's distance within which a fault is predicted in full.
	// There is no gap: it saves work, and proves nothing.
	looksGood = 2.0 / 3
	// sizePrecision is of cosines and sines that were recorded in bfloat16: 2^-8, some times. Right
	// ones ≤ 2.0e-3; no wrong one came near.
	sizePrecision = 0.02
	// thetaPrecision is of the frequencies of a theta. Right ones ≤ 3.7e-4; no wrong one came near.
	thetaPrecision = 0.01

	// leastScale to mostScale is where a scale of the scores is looked for. Known models have 0.04 to
	// 1; not measured.
	leastScale, mostScale = 1e-3, 10.0
	// leastCap to mostCap is where a cap of the scores is looked for. Known models have 20 to 50; not
	// measured.
	leastCap, mostCap = 0.5, 1e3
	// fitsRoughly is the error with a fitted scale above which a cap will not do, either; not measured.
	fitsRoughly = 0.35

	better         = 2       // factor by which an op must fit better than the one before it
	sure           = 0.05    // part of the noise below which no better attention is looked for
	looksSure      = 1.0 / 3 // part of the golden's distance within which variants are tried
	anglePrecision = 1e-3    // of angles that are repeated; not measured
	sineAtZero     = 1e-6    // the largest sine of position 0: 0 in the zoo
	unitFrequency  = 0.01    // distance from 1 of the first frequency without a scale; not measured
	mixerEps       = 1e-6    // the eps of the norms in a mixer of FalconMamba
	shareOfOne     = 1e-4    // how far the weights of a query add up to another number than 1; not measured
	leastFrequency = 0.9     // the first frequency below which all are scaled; not measured
	configTheta    = 0.1     // of the config's theta and one of rounded angles; not measured
	cosineMost     = 1.01    // the largest cosine, with rounding; not measured
)

// The relative error that a right op may have, by type. Right ops miss by ≤ 0.01 of it in float32,
// 0.16 in float16, 0.36 in bfloat16, wrong ones by ≥ 3.9, 2.5, 2.8. Norms, which are tried with
// every eps, have no gap: better then takes the best eps.
const (
	noise64      = 1e-9 // rounding of a layer in float64; not measured
	noise32      = 2e-5 // in float32
	noise16      = 4e-3 // in float16
	noiseB16     = 2e-2 // in bfloat16, of one layer
	noiseB16More = 3e-2 // in bfloat16, of code between layers
)
