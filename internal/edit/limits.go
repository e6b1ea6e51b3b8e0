package edit

// How much is tried. What fits hangs on these and on no clock; none was measured but where it says so.
const (
	leastSize, mostSize = 3, 512 // sizes of axes from which numbers are made, as 1/√d

	mostSingle      = 300     // operators of a piece up to which each is also changed by itself
	mostValues      = 40      // other values of a shape that are tried as a result, the nearest before it first
	mostNear        = 12      // and those that are put in the place of one in a whole line
	mostTakers      = 4       // operators that take a value up to which each is given another by itself
	within          = 2       // operators before it that an operand is taken from
	mostWeights     = 24      // other weights that are read in place of one
	mostRecords     = 24      // records from elsewhere that are put in the place of a result
	mostExchanged   = 2000    // pairs of values that are exchanged in a piece,
	exchangedWithin = 40      // within so many operators
	mostPositions   = 64      // positions of earlier tokens that a token is given, and runs of a loop that begin anew
	mostWidth       = 4096    // elements along an axis up to which they are put in another order,
	mostAxes        = 5       // and axes of such a value
	mostParts       = 4       // parts of which all orders are tried,
	mostPairs       = 12      // and of how many more each two are exchanged
	mostStacked     = 8       // weights that lie in one up to which they are put in another order
	mostSections    = 12      // parts of a rotary embedding,
	mostUnits       = 16      // and units into which all other sizes of them are tried
	mostKeys        = 1024    // keys of an attention up to which other masks of a forward pass are written,
	mostWindow      = 64      // keys up to which each window is tried,
	mostLines       = 8       // and sequences of a batch among which each two have each other's keys and values
	mostGrid        = 1 << 24 // numbers of a weight up to which it is read as another quantised one;
	firstRows       = 8       // so many of its rows tell whether it is one

	fittedCost  = 7  // the cost of edits whose numbers are found,
	mostUnknown = 16 // up to how many numbers of a table are,
	mostWritten = 8  // and how many of them are told

	tableCost = 2 // how much later other kinds of edits are tried on what is made of constants alone
	loopCost  = 2 // and an operator of a loop by itself,
	leastLoop = 3 // which runs so often
)

// How far things that belong together are apart in programs, in operators.
const (
	toNorm      = 3  // from its root to a norm's weight
	toRoot      = 5  // from what is normed to its root
	toScores    = 8  // from a bias of an attention to its softmax
	toAngles    = 12 // from positions and frequencies to their cosine
	toCompare   = 4  // from positions to where they are compared
	mostRegion  = 16 // from a value to what is made of it alone
	ordinalUpTo = 12 // operators of one expression are counted up to here, to tell those that repeat apart
)

const (
	near      = 0.02 // how far a cosine and a sine may be from one circle, as 16 bits have them
	nearTable = 1e-3 // how far the numbers of a table may be from a formula, relative to it,
	// nearRounded is that of a table whose numbers are of bfloat16, as Module.bfloat16() makes of frequencies: each is rounded
	// by 2⁻⁸ at most, and so is the ratio that they are held against.
	nearRounded = 1.0 / 128
)

const (
	// nearWhole is the distance from whole numbers, in units of a grid of 4 bits, up to which a number lies on it.
	nearWhole = 0.01
	// gridTop is the largest number of a weight whose grid is found by its values.
	gridTop = 63
	// mostSteps is how many steps of a grid two neighbouring numbers of a group may be apart.
	mostSteps = 4
)
