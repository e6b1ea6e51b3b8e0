package op

// The limits of the arithmetic.
const (
	// DecodeMax is how many elements are decoded at once: 256 MB of float64.
	DecodeMax = 1 << 25
	// keptMatrix is the number of elements up to which a weight stays decoded: 32 MB.
	keptMatrix = 1 << 22
	// matrixPart is how many elements of a larger weight are decoded at once.
	matrixPart = 1 << 20
	// maskMax is the number of elements up to which a tensor is read as a mask.
	maskMax = 1 << 22
	// maskTokens is the number of tokens up to which a mask is taken apart: its time is cubic.
	maskTokens = 1 << 10
	// hiddenScore is the number that hides a key if it, or a lower one, is added to a score. Masks
	// add −1e4 (float16) or the lowest number of their type; biases of positions are above −1e3.
	hiddenScore = -1e3
	// normalCond is the condition number of the normal equations beyond which they tell nothing.
	normalCond = 1e14
	// learnCond is the condition number of rows beyond which they do not tell a weight.
	learnCond = 1e7
	// noBias is the size of a learned bias, relative to an output row, below which it is rounding.
	noBias = 1e-4
	// gridSteps and goldenSections are the steps of a search for a number: 48 points, then an
	// interval that shrinks by 0.618 each time, to 1e-6 of a step.
	gridSteps, goldenSections = 48, 28
	// gridRows is how many rows of a weight are looked at to see whether it was quantised.
	gridRows = 8
	// clearlyFewer is the ratio of roundings from which a type has clearly fewer bits: three of them.
	clearlyFewer = 8
	// nearWhole is how far a quantised weight may be from a whole number, in units of its grid of 4
	// bits; of 8 bits 4 times as far.
	nearWhole = 0.01
)

// Epsilons are the eps of norms in use, the usual ones first.
var Epsilons = []float64{1e-6, 1e-5, 1e-12, 1e-8, 1e-3, 1e-7, 1e-4, 1e-2, 1e-1}

// GroupSizes are the sizes of groups of quantised weights in use, in inputs.
var GroupSizes = []int{8, 16, 32, 64, 128, 256}
