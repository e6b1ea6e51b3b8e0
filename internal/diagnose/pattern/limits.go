package pattern

// How far the search for a pattern goes.
const (
	placesMost   = 1 << 25 // elements up to which wrong places are looked for
	layoutMost   = 1 << 22 // elements up to which other orders are tried
	sampled      = 64      // elements at which an order is tried before it is predicted
	mostRows     = 4       // rows by which a tensor is shifted, at most
	mostColumns  = 64      // columns by which one is, at most
	widest       = 1 << 14 // lines that are looked for in another order, at most
	mostPairs    = 1 << 26 // pairs of them, at most
	lineElements = 32      // elements of a line that are compared
	markElements = 32      // elements by which the tensor of another place is found
	fewRows      = 16      // rows of a table that are tried for every index
	leastHead    = 8       // the smallest number of columns that is called a head
	wholeFactors = 16      // the largest whole number that is named as a factor
	maskElements = 4096    // elements of an input that tell whether it is a mask
	maskHides    = -1e3    // elements below which hide
)

// When numbers are the same, relative to their size.
const (
	leastFloor     = 1e-5 // stands for a noise floor of zero: some hundred additions in float32
	nearGolden     = 64   // noise floors by which the reference's op on the candidate's inputs is off, at most
	floors         = 10   // noise floors of a row that an element may be off, of the tensor's RMS
	leastTolerance = 1e-4 // stands for less than that
	sameElement    = 1e-3 // of an element itself, beside
	sameScale      = 1e-5 // a factor and one with a name
	sameRow        = 1e-3 // a row and another one
	sameTableRow   = 1e-4 // a row and one of a table
	markFloors     = 4    // noise floors of a row by which marked elements differ, at most
)

// What chance and rounding do.
const (
	deviations   = 4    // standard deviations that chance is allowed
	noiseBias    = 0.02 // correlation with the values that noise is allowed besides
	ofElement    = 8    // roundings that an element is off: a product errs by a few of its largest terms
	ofTensor     = 4    // roundings that a tensor is off
	largestNoise = 0.12 // the relative error from which noise is no rounding
	noiseLeast   = 64   // elements of noise, at least
	alikeRows    = 8    // ratio of the errors of two rows up to which they are alike
	mayOverflow  = 1e4  // the size of numbers from which a NaN may come of infinities
	byChance     = 0.1  // distance of sorted numbers of one distribution, times √n
)

// noiseSizes are types by the relative error from which noise may be their rounding.
var noiseSizes = []struct {
	above float64
	name  string
}{{6e-5, "float16 or tf32"}, {1e-3, "bfloat16"}, {1.2e-2, "float8"}}

// Dropout.
const (
	tellsNothing = 1e-3 // size of a golden element, of the RMS, below which a zero tells nothing
	droppedBelow = 1e-5 // size of a candidate's element, of the RMS, that was dropped
	valuesCond   = 1e4  // condition number of values beyond which they do not tell their weights
	tooSmall     = 1e-5 // weight below which none is found
	largeEnough  = 1e-2 // weight from which one is exact
	weightError  = 0.05 // to this
	leastRate    = 1e-3 // the lower bound of the rate of a dropout of weights
	mostRate     = 0.95 // the upper bound
)
