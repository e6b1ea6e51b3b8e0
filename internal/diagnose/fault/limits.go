package fault

// How far the search for a fault goes.
const (
	otherNorms    = 200     // weights of other norms that are tried
	otherLayers   = 64      // weights of other linear layers that are tried
	changedWeight = 1 << 22 // elements up to which a weight is changed: 32 MB
	roundedWeight = 1 << 24 // elements up to which one is rounded
	fewRows       = 16      // rows up to which each row of a table is tried for every index
	fewExperts    = 16      // experts of which each pair is tried exchanged
	firstRows     = 8       // rows of a weight that tell whether it may lie on a grid
	fewSections   = 16      // pairs up to which all sections of M-RoPE are tried
	fewSequences  = 16      // sequences of a batch of which each pair is tried exchanged
	maxHeads      = 256     // the largest number of heads that is tried
	maxRoll       = 8       // how far heads are moved
	longestCache  = 1 << 14 // tokens up to which other caches are tried
	everyPosition = 64      // tokens up to which a step is tried at every position
	everyWindow   = 64      // tokens up to which every sliding window is tried; above, powers of 2
	maxGroups     = 64      // groups of which each gets a fitted scale, at most
	damageRows    = 128     // rows on which a damaged weight is looked for
	maxTiles      = 64      // tiles of one size that are tried, at most
	spansOfAll    = 40      // spans of inputs that are tried where all outputs are wrong
	maxFitTiles   = 128     // tiles of one size that are fitted, at most
	leastTheta    = 10      // the lower bound of the search for a theta
	mostTheta     = 1e9     // the upper one
	scaleReach    = 64      // factor, up or down, within which a scale is searched for
	leastEps      = 1e-13   // the lower bound of the search for an eps
	mostEps       = 100     // the upper one
	leastCut      = 0.01    // the lower bound of the search for where a gate is cut
	mostCut       = 1e3     // the upper one
	maxFactor     = 4       // the largest factor of a term
	unsureRank    = 2       // is added for a quantisation that neither config nor weight tell
)

// When numbers are the same, relative to their size. Measured in the zoo, November 2026:
// docs/thresholds.md.
const (
	// sameFactor is of factors that are learned of rounded tensors: within the rounding of float16.
	// Right ones 0, others ≥ 0.5.
	sameFactor = 1e-3
	// explained is the share of the squared error that the factor of a block must explain. Right
	// ones 1.0000, wrong ones ≤ 0.82.
	explained = 0.98
	// unexplained is the share of it that fitted numbers may leave. Right ones ≤ 1.4e-13, wrong
	// ones ≥ 2.6e-3.
	unexplained = 1e-4
	// otherHead is the cosine of logits up to which they may be those of other weights. Not measured.
	otherHead = 0.6
	// smallColumn is the size of a column, of the usual one, below which its noise is measured by
	// that.
	smallColumn = 0.2

	sameTheta    = 1e-6  // thetas of a config, which are exact; not measured
	sameScale    = 1e-9  // scales, which are calculated; not measured
	knownFactor  = 0.02  // a fitted factor of a damaged block and a known one; not measured
	halfInfinity = 65520 // the number from which float16 rounds to infinity
)

// tiles are the widths of blocks that kernels leave out or mix up, in inputs; fitTiles those whose
// numbers are fitted.
var tiles, fitTiles = []int{4, 8, 16, 32, 64}, []int{1, 2, 4, 8, 16, 32}
