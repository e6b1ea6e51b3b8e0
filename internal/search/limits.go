package search

const (
	// mostWeights is how many bytes of weights are kept in memory while pieces of a program are replayed: a layer of
	// a model with 7 billion of 16 bits has 400 MB. By reason.
	mostWeights = 256 << 20

	// leastWork and mostWork bound how many multiply-adds the edits of one place may take: runs times what the
	// piece itself takes. They are counted and never timed, so the result is the same on a loaded machine. A
	// core does about 1e9 in a second, November 2026: the attention of a layer of a 7B model takes 1.1e8 a run.
	leastWork, mostWork, runs = 3e9, 3e10, 600

	// window is how many edits are tried at a time, on all processors: results are the same on any.
	window = 32

	// beforeSolved is up to which cost edits of a large piece are tried before numbers are solved for.
	beforeSolved = 3
	// small is up to which error roundings are tried first, as if they cost roundingRank.
	small, roundingRank = 0.03, 1

	// mostF16 is the largest number of float16.
	mostF16 = 65504

	// most is how much of the error an edit may leave to fit, whatever rounding makes: small errors
	// are near to many things.
	most = 0.3

	// apart is how many times more of the error another edit has to leave than the best, to be no rival. GELU and
	// its tanh form are 1.02 apart in bfloat16, GELU and its logistic form 1.8.
	apart = 1.5

	// classes is how many costs above that of the first fit are tried.
	classes = 1

	// clearly is how many times smaller an edit has to make the error for another beside it to be looked for, and
	// mostFirst how many such edits, the best, are tried with all others.
	clearly, mostFirst = 3, 4

	// nearer is how many times smaller an edit has to make the error to be told where none fits.
	nearer = 10
)

const (
	// exact is up to which part of the limit all fits are as good as exact.
	exact = 0.2

	// alike is up to which relative distance two results are of one function.
	alike = 1e-6

	// alikeFitted is that where both have numbers that were found: eps of a norm at its root and at the mean before it are
	// 2e-5 apart in bfloat16.
	alikeFitted = 1e-3
	// large is from which number on two of them that do the same are no cause: each makes something infinite.
	large = 10

	// mostPlaces is at how many places of a piece the simplest edits of one function may be, to be one cause: a
	// factor may be left out of either operand.
	mostPlaces = 3

	// mostSlices is how many slices along an axis are put in order, and leastSlice how many numbers each has.
	mostSlices, leastSlice = 4096, 2

	// equations is how many numbers of the candidate there are for each that is found from them, steps how often it is
	// found better, and step how far it is moved to see what hangs on it.
	equations, steps, step = 32, 6, 1e-3

	// converges is which part of the error a step may leave to go on.
	converges = 0.7
)
