package report

// What counts as a change between two reports: the worst row's relative L2 is this factor worse or
// better, and the larger of the two above so many units of rounding of the candidate's type. Not
// measured: that takes recorded runs of one model on two processors.
const (
	changeFactor = 2 // times
	changeUnits  = 8 // units, 2^−24 each for float32
)

// nearlyAll is the share of the squared error from which a guess explains nearly all of it.
const nearlyAll = 0.995

// How much is shown, in the text where it is not verbose. GitHub does not show a step summary of
// more than 1 MiB, and keeps ten annotations of a step.
const (
	maxFailing     = 20   // failing rows
	maxPassing     = 5    // rows of a report that passes
	maxCosts       = 6    // layers, by what they took
	maxUnmatched   = 8    // tensors that only one side has, and layers of the frontier
	maxCauses      = 5    // causes
	maxHints       = 3    // hints for fixture.yaml
	maxNotes       = 8    // notes, and differences of the order
	maxTestNotes   = 2    // notes below failing tests
	maxServed      = 24   // requests to a server
	maxModeRows    = 100  // layers in the comparison of the two modes
	maxPaths       = 25   // runs along execution paths
	maxSummaryCell = 300  // characters of a cell of one
	maxAnnotations = 10   // annotations
	maxNext        = 700  // bytes of the next command in JSON: a longer one is not offered
	maxBrief       = 2048 // bytes of either form of a brief, with the line break at its end
	leastText      = 16   // bytes that a line of it keeps at least; then the next command goes, too
	leastName      = 60   // bytes that a string of its JSON keeps at least: names of layers, ports and causes are seldom longer
	maxBins        = 256  // bins of the rows of a tensor
)
