package rebuild

// The limits of the work at one scene.
const (
	workLimit      = 6e9  // multiplications that a scene may cost: some seconds
	attentionShare = 4    // part of them that one attention may cost
	searchShare    = 8    // part of them that one search for a number may cost
	searchSteps    = 80   // evaluations of a search for a number
	searchRows     = 6    // rows on which a number is searched for
	rightWork      = 1e9  // multiplications of the right product, to compare with
	SampleRows     = 256  // rows on which a number is fitted
	ProbeRows      = 16   // rows on which a prediction must look good before it is made in full
	inFull         = 12   // predictions that are made in full
	sameID         = 3    // of them those of one cause
	coneSize       = 48   // values that are explained on the way to a target
	attentionRows  = 6    // rows on which an attention is looked for
	termRows       = 12   // rows that tell which tensors make up another
	termColumns    = 24   // columns that do
	modulationRows = 6    // rows that tell a modulation
	learnRows      = 64   // rows of which a norm's weight is learned
	learnLeast     = 6    // rows without which it is not
	learnInputs    = 512  // inputs of a learned linear layer, at most
	learnOutputs   = 2048 // outputs of one, at most
	masksTried     = 6    // tensors that are tried as a mask
	windowsTried   = 128  // the widest sliding window that is tried where no mask was recorded
	settingsTried  = 24   // ways of attention that are tried with windows
	gatedMost      = 40   // values up to which products with an activation are tried
	partsLeast     = 2    // parts of an adaLN projection
	partsMost      = 12   // parts of one, at most
)

// Sizes of errors, relative to what they are of.
const (
	better         = 2       // factor by which an op must fit better than the one before to take its place
	sure           = 0.05    // part of the noise below which no better attention is looked for
	looksGood      = 2.0 / 3 // part of the golden's distance within which a fault is predicted in full
	looksSure      = 1.0 / 3 // part of it within which its variants are tried
	freely         = 8       // factor by which a sum with a fitted number must fit better than one without
	noFactor       = 1e-3    // the smallest factor of a term
	anglePrecision = 1e-3    // of angles that are repeated
	sizePrecision  = 0.02    // of cosines and sines that were recorded in bfloat16: 2^-8, some times
	thetaPrecision = 0.01    // of the frequencies of a theta
	sineAtZero     = 1e-6    // the largest sine of position 0
	configTheta    = 0.1     // distance of the config's theta from one that rounded angles show
	cosineMost     = 1.01    // the largest cosine, with rounding
	noise64        = 1e-9    // rounding of a layer in float64
	noise32        = 2e-5    // in float32
	noise16        = 4e-3    // in float16
	noiseB16       = 2e-2    // in bfloat16, of one layer
	noiseB16More   = 3e-2    // in bfloat16, of code between layers
)
