package op

// The limits of the arithmetic, of which the first four tell right from wrong. Measured in the zoo,
// November 2026: docs/thresholds.md; the others were not.
const (
	// HiddenScore is the largest number that hides a key when it is added to a score. Not measured:
	// masks add −1e4 or less, biases of positions more.
	HiddenScore = -1e3
	// normalCond is the condition number beyond which normal equations tell nothing. Up to 3.3e6 in
	// the zoo, never beyond.
	normalCond = 1e14
	// nearWhole is the distance from whole numbers, in units of a grid of 4 bits; of 8 bits 4 times
	// that. Weights on the grid 1e-6; others ≥ 0.0103 by chance of one element.
	nearWhole = 0.01
	// clearlyFewer is the ratio of roundings from which a type has clearly fewer bits: three of
	// them.
	clearlyFewer = 8

	learnCond      = 1e7     // condition number of rows beyond which they tell no weight
	noBias         = 1e-4    // size of a learned bias, of an output row, below which it is rounding
	DecodeMax      = 1 << 25 // elements that are decoded at once: 256 MB of float64
	keptMatrix     = 1 << 22 // elements up to which a weight stays decoded: 32 MB
	matrixPart     = 1 << 20 // elements of a larger weight that are decoded at once
	maskMax        = 1 << 22 // elements up to which a tensor is read as a mask
	maskTokens     = 1 << 10 // tokens up to which a mask is taken apart: its time is cubic
	gridSteps      = 48      // points at which a number is searched for first
	goldenSections = 28      // sections of the interval around the best: to 1e-6 of a step
	gridTop        = 63      // the largest number of a weight whose grid is found by its values
	mostSteps      = 4       // steps of a grid that two neighbouring numbers of a group may be apart
	followsLeast   = 64      // elements that tell whether errors follow the values
	followsMost    = 1 << 16 // elements that are looked at for it
	gridRows       = 8       // rows of a weight that tell whether it was quantised
)

// Epsilons are the eps of norms in use, the usual ones first.
var Epsilons = []float64{1e-6, 1e-5, 1e-12, 1e-8, 1e-3, 1e-7, 1e-4, 1e-2, 1e-1}

// GroupSizes are the sizes of groups of quantised weights in use, in inputs.
var GroupSizes = []int{8, 16, 32, 64, 128, 256}
