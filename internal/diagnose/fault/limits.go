package fault

// How far the search for a fault goes.
const (
	// otherNorms is how many weights of other norms are tried, otherLayers how many of other linear
	// layers.
	otherNorms, otherLayers = 200, 64
	// changedWeight is the size in elements up to which a weight is changed, 32 MB; roundedWeight that
	// up to which one is rounded.
	changedWeight, roundedWeight = 1 << 22, 1 << 24
	// fewRows is the number of rows up to which each row of a table is tried for every index.
	fewRows = 16
	// maxHeads is the largest number of heads that is tried, maxRoll how far heads are moved.
	maxHeads, maxRoll = 256, 8
	// everyWindow is the size up to which every sliding window is tried, and above it powers of two.
	everyWindow = 64
	// maxGroups is the largest number of groups whose scales are fitted.
	maxGroups = 64
	// damageRows is how many rows a damaged weight is looked for on.
	damageRows = 128
	// maxTiles is the largest number of tiles of one size that are tried, spansOfAll how many spans of
	// inputs are tried where all outputs are wrong, maxFitTiles how many tiles are fitted.
	maxTiles, spansOfAll, maxFitTiles = 64, 40, 128
	// leastTheta and mostTheta bound the search for a theta, scaleReach the search for a scale: a
	// factor up or down. maxFactor bounds the factor of a term.
	leastTheta, mostTheta, scaleReach, maxFactor = 10, 1e9, 64, 4
	// guessRank is the rank of guesses about weights; unsureRank is added for a quantisation that the
	// config does not tell.
	guessRank, unsureRank = 3, 2
)

// When numbers are the same, relative to their size.
const (
	// sameFactor is within the rounding of float16: factors are learned of rounded tensors.
	sameFactor = 1e-3
	// sameTheta and sameScale tell numbers of a config apart, which are exact.
	sameTheta, sameScale = 1e-6, 1e-9
	// knownFactor is how near a fitted factor of a damaged block is to a known one.
	knownFactor = 0.02
	// explained is the share of the squared error that a factor must explain, unexplained the share
	// that fitted numbers may leave.
	explained, unexplained = 0.98, 1e-4
	// smallColumn is the size of a column, relative to the usual one, below which noise is measured by
	// the usual one.
	smallColumn = 0.2
	// clearNoise is how many times the noise a column must be off to be called wrong in a guess.
	clearNoise = 5
)

// tiles are the widths of blocks that kernels leave out or mix up, in inputs; fitTiles those whose
// numbers are fitted.
var tiles, fitTiles = []int{4, 8, 16, 32, 64}, []int{1, 2, 4, 8, 16, 32}
