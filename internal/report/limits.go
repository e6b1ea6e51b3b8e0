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
	maxRows        = 20   // failing rows, execution paths, answers of a server
	maxModeRows    = 100  // layers in the comparison of the two modes
	maxLines       = 8    // notes, names and other lines
	maxFew         = 5    // causes, hints, costs, rows of a report that passes
	maxTestNotes   = 2    // notes below failing tests
	maxLimit       = 24   // columns of a limit; what is longer is a reason
	maxSummaryCell = 600  // characters of a cell or line of one
	maxAnnotations = 10   // annotations
	maxNext        = 700  // bytes of the next command in JSON: a longer one is not offered
	maxBrief       = 2048 // bytes of either form of a brief, with the line break at its end
	leastText      = 16   // bytes that a line of it keeps at least; then the next command goes, too
	leastName      = 60   // bytes that a string of its JSON keeps at least: names of layers, ports and causes are seldom longer
	maxBins        = 256  // bins of the rows of a tensor
)
