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

// How far the search for a pattern goes.
// hiddenScore is what is added to the score of a key that is hidden, or less: masks have −1e4 and below, biases of
// positions are above −1e3.
const hiddenScore = -1e3

const (
	placesMost      = 1 << 25 // elements up to which wrong places are looked for
	layoutMost      = 1 << 22 // elements up to which other orders are tried
	sampled         = 64      // elements at which an order is tried before it is predicted
	mostRows        = 4       // rows by which a tensor is shifted, at most
	widest          = 1 << 14 // lines that are looked for in another order, at most
	mostPairs       = 1 << 26 // pairs of them, at most
	lineElements    = 32      // elements of a line that are compared
	leastNeighbours = 2       // tensors of a series that have to be their neighbours'; by reason
	clearlyNearer   = 8       // times nearer that they come to them than to their own: the margin of a proof
	leastNormRows   = 4       // rows that tell whether a norm makes one tensor of another; a bias takes two of them
	normRows        = 256     // rows of which its weights are fitted
	markElements    = 32      // elements by which the tensor of another place is found
	leastHead       = 8       // the smallest number of columns that is called a head
	wholeFactors    = 16      // the largest whole number that is named as a factor
	maskElements    = 4096    // elements of an input that tell whether it is a mask
)

// When numbers are the same, relative to their size. Measured in the zoo, November 2026:
// internal/exam/thresholds.md.
const (
	// nearGolden is how many noise floors the reference's op on the candidate's inputs is off, at
	// most. Right ones ≤ 0.92; no wrong one was seen.
	nearGolden = 64
	// leastFloor stands for a noise floor of zero: some hundred additions in float32. A tenth of it
	// tells the order of a norm: right ≤ 1e-3 of that limit, wrong ≥ 10.
	leastFloor = 1e-5
	// sameImage is the relative error of images that are the same but for a known step: rounding in
	// float16. Not measured.
	sameImage = 1e-3
	// markFloors is how many noise floors of a row marked elements of the same tensor differ, at
	// most. Each element has to; by itself one tells nothing.
	markFloors   = 4
	sameWeight   = 1e-2 // a fitted weight of a norm and a recorded one: rounding in 8 bits of significand; not measured
	sameRow      = 1e-3 // a row and another one: right 0, wrong ≥ 0.09
	otherRow     = 0.6  // cosine of a row and another one of a table: by chance 0.25 of 64 numbers; not measured
	sameTableRow = 1e-4 // a row and one of a table: right 0, wrong ≥ 0.31
	sameScale    = 1e-5 // a factor and one with a name; a tenth of it from 1: others ≥ 1.9e-5

	floors         = 10   // noise floors of a row that an element may be off; not measured
	leastTolerance = 1e-4 // stands for less than that; not measured
	sameElement    = 1e-3 // of an element itself, besides; not measured
)

// What chance and rounding do. Measured likewise.
const (
	// deviations is how many standard deviations chance is allowed. Shares of a dropout: right ≤
	// 0.16 of the limit, wrong ≥ 2.3 of it. Noise has no gap there, and is a guess only.
	deviations = 4
	// ofElement and ofTensor are how many roundings an element or the tensor is off that went
	// through a type: a product errs by a few of its largest terms. Right ≤ 0.74; no wrong one was
	// seen.
	ofElement, ofTensor = 8, 4
	// byChance is the distance of sorted numbers of one distribution, times √n. No gap, right
	// 0.139, wrong 0.091: the proof decides.
	byChance = 0.1

	noiseBias = 0.02 // correlation with the values that noise is allowed besides; no gap
	// noiseFollows is the part of noise that the values say (vec.FollowsValue). Of 64, 256 and 1024 numbers
	// noise has 0.55, 0.47 and 0.17 at most, smooth functions 0.79, 0.97 and 0.99 at least, by simulation.
	noiseFollows = 0.6
	// alikeRows is the ratio of the errors of two rows up to which they are alike. Noise ≤ 1.7,
	// else ≥ 104.
	alikeRows = 8

	coarseLeast = 8   // numbers that a type has a finer step for: by chance they are on a coarser one with 2^-8
	noiseRows   = 4   // rows of noise, at least, of which it is said that they are alike; not measured
	noiseLeast  = 64  // elements of noise, at least; not measured
	mayOverflow = 1e4 // the size from which a NaN may come of infinities; not measured, 6.1 seen
)

type noiseSize struct {
	above, below float64
	name         string
}

// noiseSizes are types by the relative errors that may be their rounding. Layers of the zoo in float16
// and in tf32 2.5e-4 to 3.6e-4, in bfloat16 2.5e-3 to 3.0e-3, in float8 2.6e-2 to 4.9e-2: a factor of 1.5
// on both sides.
var noiseSizes = []noiseSize{{1.6e-4, 5.5e-4, "float16 or tf32"}, {1.6e-3, 4.5e-3, "bfloat16"}, {1.7e-2, 7.5e-2, "float8"}}

// Dropout. Only what says so was measured.
const (
	tellsNothing = 1e-3 // size of a golden element, of the RMS, below which a zero tells nothing
	droppedBelow = 1e-5 // size of a candidate's element, of the RMS, that was dropped
)

// What is said of the heads of attention.
const (
	// uniform is the part of the largest entropy from which a head looks at all keys alike: of ten keys
	// none then has more than 1.7 times its share. The heads of MiniLM have 0.946 at most; small random
	// models 0.5 to 0.8, or more than 0.99 where their weights are so small that they are uniform.
	uniform = 0.99
	// leastQueries is how many queries tell how a head looks. By reason.
	leastQueries = 4
	// sumError is how far the weights of a query may sum up beside 1: rounding in 8 bits of significand.
	sumError = 0.02
	// wholeRows is the part of the queries whose weights have to sum to 1, where learned sinks take some.
	wholeRows = 0.5

	// comesOut is how far a context may be from what its weights make of the recorded values: rounding in 8 bits.
	comesOut = 0.02

	mostContext = 1 << 24 // elements of a context of which the weights are calculated
)

// What is shown of a difference.
const (
	shownTokens = 4  // ids
	shownRunes  = 24 // characters of a text
)

// specials is how many special tokens a tokenizer puts around a text: BOS or [CLS] before, EOS or
// [SEP] after. What is lost beyond that was cut.
const specials = 1

// promptTokens is how many tokens a template adds at most to ask for an answer: Llama 3's adds 4,
// ChatML's 3. A conversation that lacks more of its end was cut.
const promptTokens = 12
