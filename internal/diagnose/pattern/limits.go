package pattern

// How far the search for a pattern goes.
const (
	// placesMost is the size in elements up to which wrong places are looked for, layoutMost the size up
	// to which other orders are tried.
	placesMost, layoutMost = 1 << 25, 1 << 22
	// sampled is at how many elements an order is tried before it is predicted.
	sampled = 64
	// mostRows and mostColumns are how far rows and columns are shifted.
	mostRows, mostColumns = 4, 64
	// widest is the largest number of lines that are looked for in another order, mostPairs that of
	// pairs of them. lineElements is how many elements of a line are compared.
	widest, mostPairs, lineElements = 1 << 14, 1 << 26, 32
	// markElements is by how many elements the tensor of another place is found.
	markElements = 32
	// fewRows is how many rows of a table are tried for every index.
	fewRows = 16
	// leastHead is the smallest number of columns that is called a head.
	leastHead = 8
	// wholeFactors is the largest whole number that is named as a factor.
	wholeFactors = 16
	// maskElements is how many elements of an input tell whether it is a mask; maskHides is the number
	// below which one hides.
	maskElements, maskHides = 4096, -1e3
)

// When numbers are the same, relative to their size.
const (
	// leastFloor stands for a noise floor of zero: float32 has 6e-8, some hundred additions 1e-5.
	leastFloor = 1e-5
	// nearGolden is how many noise floors the reference's op on the candidate's inputs may be from the
	// golden: inputs that agree make an output that nearly does.
	nearGolden = 64
	// floors is how many noise floors of a row an element may be off, of the tensor's RMS;
	// leastTolerance stands for a smaller one.
	floors, leastTolerance = 10, 1e-4
	// sameElement is what an element may be off beside, of itself.
	sameElement = 1e-3
	// sameScale is how near a factor is to one with a name.
	sameScale = 1e-5
	// sameRow and sameTableRow are how near a row is to another one, and to a row of a table.
	sameRow, sameTableRow = 1e-3, 1e-4
	// markFloors is how many noise floors of a row a marked element may be off.
	markFloors = 4
)

// What chance and rounding do.
const (
	// deviations is how many standard deviations chance is allowed.
	deviations = 4
	// ofElement and ofTensor are how many roundings of a type an element, and a tensor, may be off: a
	// product of rounded operands errs by a few of the largest terms.
	ofElement, ofTensor = 8, 4
	// largestNoise is the relative error from which noise is no rounding.
	largestNoise = 0.12
	// alikeRows is the ratio of the errors of two rows up to which they are alike.
	alikeRows = 8
	// halfInfinity is the number from which float16 rounds to infinity.
	halfInfinity = 65520
	// mayOverflow is the size of numbers from which a NaN may come of infinities.
	mayOverflow = 1e4
)

// noiseSizes are the types by the relative error from which noise may be their rounding, measured on
// layers that were computed in them.
var noiseSizes = []struct {
	above float64
	name  string
}{{6e-5, "float16 or tf32"}, {1e-3, "bfloat16"}, {1.2e-2, "float8"}}

// Dropout.
const (
	// tellsNothing is the size of a golden element, of the RMS, below which a zero tells nothing;
	// droppedBelow the size of a candidate's element that was dropped.
	tellsNothing, droppedBelow = 1e-3, 1e-5
	// valuesCond is the condition number of values beyond which they do not tell their weights.
	valuesCond = 1e4
	// tooSmall is the weight below which none is found, largeEnough the weight from which one is exact
	// to weightError.
	tooSmall, largeEnough, weightError = 1e-5, 1e-2, 0.05
	// leastRate and mostRate bound the rate of a dropout of weights.
	leastRate, mostRate = 1e-3, 0.95
)
