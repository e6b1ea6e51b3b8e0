package piece

import "github.com/goparity/goparity/tensor"

// The limits of this package. internal/exam/thresholds.md says in which words, and on what they were measured.
const (
	// perNoise and perWide are how many times the noise of a piece, by rounding and by float64, its
	// error may be. Healthy pieces of ONNX Runtime, 6342 in 24 models, reach 0.87 of the larger, rows
	// 1.0, without any floor. November 2026. Of a row that a tie decides, the noise is what shaking makes.
	perNoise, perWide = 3, 4

	// perRow is how many floors a row may be off: rows are short.
	perRow = 3

	// leastRow is the least denominator of a row's error, as a part of the RMS of the rows' norms.
	leastRow = 0.3

	// leastErrors is how many standard errors a tensor of 16 bits has to be larger throughout than what its
	// piece makes. Of 9157 healthy pieces of 94 runs none that is a unit of rounding larger has more than
	// 5.3; of weights that are 1 % off, 105 of 106 have 12 and more. Fewer elements than leastElements, and
	// rows than leastRows, tell no error. November 2026.
	leastErrors, leastElements, leastRows = 12, 32, 4
	// leastUnits is the least part where fewer than leastRows slices along an axis hold the numbers. The factor of a
	// channel of a folded batch norm is four roundings, 0.9 units: one of 4 channels is 1.14 off in float16. By reason.
	leastUnits = 3
	// mostLarger is up to where that is a fault, and no factor that is taken back elsewhere. By reason.
	mostLarger = 0.2

	// huge is from which magnitude on a number means infinity.
	huge = 1e30

	// shakes is how often a choice is made anew on sources that are shaken by shakenBy units, to see which
	// rows are stable. Ties of 16 bits in 5 architectures of experts are seen by 12, not by 4, November 2026.
	shakes, shakenBy = 12, 2

	// mostLeftOut and mostLooks are how many values a stretch may have, and how many pieces are looked
	// at for one. The order of chosen experts takes 60 ports, November 2026.
	mostLeftOut, mostLooks = 60, 150

	// betterBy is how many times smaller an error has to be with a port as a source than without it,
	// for the port to be right as it stands. It is core's 1.5: 61 rewrites and 306 faults in 29
	// architectures, November 2026.
	betterBy = 1.5

	// otherOrder is how many floors the norms of rows may be off that are in another order. Rows of experts
	// in 16 bits are off by 3, November 2026.
	otherOrder = 10.0

	// betterFloor is what does not speak for a port, whatever it was before: half the floor of float32,
	// a twentieth of bfloat16's. Attention with q × 3, k ÷ 3 moves by 3e-7 in float32, November 2026.
	betterFloor, betterFloor16 = 1e-6, 3e-4

	// jump is by which factor the error of what cannot be replayed has to exceed that of what goes into
	// it, and LeastOf16 how many noise floors it has to be in 16 bits. By reason.
	jump, LeastOf16 = 2, 1.5

	// leastExact and leastSized are how many products one rounding of their operands has to explain for it
	// to be the run's precision, to the noise of float32 and by its size alone; mostProducts which part of
	// all products, and of all that is wrong. ONNX Runtime's dynamic int8 of 22 models and torch's of 6, November 2026.
	leastExact, leastSized, mostProducts = 4, 8, 0.7
	// mostProbes is how many pieces all schemes are tried on. It costs time, and judges nothing.
	mostProbes = 4
	// muchBetter is which part of the error at most a scheme that explains it leaves. It saves time: what
	// explains leaves a thousandth.
	muchBetter = 0.1
	// perOperands is how many times what cutting operands to 10 bits makes a product may be off: rounding
	// to nearest makes half, another order of sums more. leastOperands is how many times that it has to be
	// off: less is another precision. By reason.
	perOperands, leastOperands = 2, 0.35
)

const (
	// offGrid is by which part of a step numbers of 8 bits in float32 may be off their grid: 256 roundings
	// of 2⁻²⁴ are 1.5e-5. By reason.
	offGrid = 1e-4

	// leastValues is how many different numbers a step apart are taken for numbers of 8 bits. By reason.
	leastValues = 8
)

// floor is the local error up to which a piece is right in a type whatever its noise is. float32:
// MAX's largest error is 1.2e-6, of 432 ports; 1e-5 for 1e-6 in a norm is seen in 20 of 28. November
// 2026.
func floor(d tensor.DType) float64 {
	switch d {
	case tensor.F64:
		return 1e-12
	case tensor.F16:
		return 1e-3
	case tensor.BF16:
		return 6e-3
	}
	return 2e-6
}

const (
	// mostWeights is how many bytes of weights are kept in memory while pieces of a program are replayed: a layer of
	// a model with 7 billion of 16 bits has 400 MB. By reason.
	mostWeights = 256 << 20

	// leastWork and mostWork bound how many multiply-adds the edits of one place may take: runs times what the
	// piece itself takes. They are counted and never timed, so the result is the same on a loaded machine. A
	// core does about 1e9 in a second, November 2026: the attention of a layer of a 7B model takes 1.1e8 a run, a
	// tiny MobileNet as one piece 4e7. 600 runs give no other answer in the exams.
	leastWork, mostWork, runs = 3e9, 3e10, 200
	// pairWork is that of two edits together, beside what those of one left of leastWork: the pair of the exams that is found
	// last takes 2.1e9.
	pairWork = 1.5e9
	// Elsewhere is that of all places of a run but the first: a recurrence may be wrong at each of its steps.
	Elsewhere = 3e9

	window       = 32   // edits that are tried at a time, on all processors: results are the same on any
	beforeSolved = 3    // the cost up to which edits of a large piece are tried before numbers are solved for
	small        = 0.03 // the error up to which roundings are tried first,
	roundingRank = 1    // as if they cost this
	classes      = 1    // how many costs above that of the first fit are tried

	// most is how much of the error an edit may leave to fit, whatever rounding makes: small errors
	// are near to many things.
	most = 0.3

	// clearly is how many times smaller an edit has to make the error for another beside it to be looked for, and
	// mostFirst how many such edits, the best, are tried with all others; nearer, for it to be told where none fits.
	clearly, mostFirst, nearer = 3, 4, 10

	mostF16 = 65504 // the largest number of float16
)

// What is proven.
const (
	// apart is how many times more of the error another edit has to leave than the best, to be no rival. GELU and
	// its tanh form are 1.02 apart in bfloat16, GELU and its logistic form 1.8.
	rivals = 1.5

	exact = 0.2  // up to which part of the limit all fits are as good as exact
	alike = 1e-6 // up to which relative distance two results are of one function

	// alikeFitted is that where both have numbers that were found: eps of a norm at its root and at the mean before it are
	// 2e-5 apart in bfloat16.
	alikeFitted = 1e-3

	large      = 10 // from which number on two of them that do the same are no cause: each makes something infinite
	mostPlaces = 3  // where the simplest edits of one function may be, to be one cause: a factor is left out of either operand
)

// What is solved.
const (
	mostSlices, leastSlice = 4096, 2 // slices along an axis that are put in order, and numbers that each has
	equations              = 32      // numbers of the candidate for each that is found from them
	steps, step            = 6, 1e-3 // how often it is found better, and how far it is moved to see what hangs on it
	converges              = 0.7     // the part of the error that a step may leave to go on
)
