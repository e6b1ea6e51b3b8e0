package fault

// How far the search for a fault goes.
const (
	otherNorms    = 200     // weights of other norms that are tried
	otherLayers   = 64      // weights of other linear layers that are tried
	changedWeight = 1 << 22 // elements up to which a weight is changed: 32 MB
	roundedWeight = 1 << 24 // elements up to which one is rounded
	fewRows       = 16      // rows up to which each row of a table is tried for every index
	maxHeads      = 256     // the largest number of heads that is tried
	maxRoll       = 8       // how far heads are moved
	everyWindow   = 64      // tokens up to which every sliding window is tried; above it powers of two
	maxGroups     = 64      // groups of which each gets a fitted scale, at most
	damageRows    = 128     // rows on which a damaged weight is looked for
	maxTiles      = 64      // tiles of one size that are tried, at most
	spansOfAll    = 40      // spans of inputs that are tried where all outputs are wrong
	maxFitTiles   = 128     // tiles of one size that are fitted, at most
	leastTheta    = 10      // the lower bound of the search for a theta
	mostTheta     = 1e9     // the upper one
	scaleReach    = 64      // factor, up or down, within which a scale is searched for
	maxFactor     = 4       // the largest factor of a term
	guessRank     = 3       // of guesses about weights
	unsureRank    = 2       // is added for a quantisation that neither config nor weight tell
)

// When numbers are the same, relative to their size.
const (
	sameFactor   = 1e-3  // factors that are learned of rounded tensors: within the rounding of float16
	sameTheta    = 1e-6  // thetas of a config, which are exact
	sameScale    = 1e-9  // scales, which are calculated
	sameRow      = 0.1   // first elements of rows of a table, before all are compared
	knownFactor  = 0.02  // a fitted factor of a damaged block and a known one
	explained    = 0.98  // share of the squared error that a factor must explain
	unexplained  = 1e-4  // share of it that fitted numbers may leave
	smallColumn  = 0.2   // size of a column, of the usual one, below which its noise is measured by that
	halfInfinity = 65520 // the number from which float16 rounds to infinity
	clearNoise   = 5     // noises by which a column is off that is called wrong in a guess
)

// tiles are the widths of blocks that kernels leave out or mix up, in inputs; fitTiles those whose
// numbers are fitted.
var tiles, fitTiles = []int{4, 8, 16, 32, 64}, []int{1, 2, 4, 8, 16, 32}
