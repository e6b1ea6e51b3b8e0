package search

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
	apart = 1.5

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
