package rebuild

// The limits of the work at one scene.
const (
	// workLimit is the number of multiplications that a scene may cost: some seconds.
	workLimit = 6e9
	// attentionShare and searchShare are the parts of it that one attention may cost, and one search
	// for a number.
	attentionShare, searchShare = 4, 8
	// rightWork is the number of multiplications that the right product may cost, to compare with.
	rightWork = 1e9
	// searchSteps is how many evaluations a search for a number takes.
	searchSteps = 80
	// SampleRows is how many rows a number is fitted on.
	SampleRows = 256
	// ProbeRows is on how many rows a prediction must look good before it is made in full.
	ProbeRows = 16
	// searchRows is on how many rows a number is searched for, attentionRows on how many an
	// attention is looked for.
	searchRows, attentionRows = 6, 6
	// termRows and termColumns are how many elements tell which tensors make up another,
	// modulationRows how many rows tell a modulation.
	termRows, termColumns, modulationRows = 12, 24, 6
	// learnRows is how many rows a norm's weight is learned of, at least learnLeast.
	learnRows, learnLeast = 64, 6
	// learnInputs is how many inputs a learned linear layer has at most, learnOutputs how many
	// outputs.
	learnInputs, learnOutputs = 512, 2048
	// inFull is how many predictions are made in full, sameID how many of one cause.
	inFull, sameID = 12, 3
	// coneSize is how many values are explained on the way to a target.
	coneSize = 48
	// masksTried is how many tensors are tried as a mask, windowsTried the widest window that is tried
	// without one, settingsTried how many ways of attention are tried with windows.
	masksTried, windowsTried, settingsTried = 6, 128, 24
	// gatedMost is the number of values up to which products with an activation are tried.
	gatedMost = 40
	// partsLeast and partsMost are of how many parts an adaLN projection consists.
	partsLeast, partsMost = 2, 12
	// markElements is by how many elements tensors are told apart.
	markElements = 24
)

// Sizes of errors, relative to what they are of.
const (
	// better is by what factor an op must fit better than the one before to take its place.
	better = 2
	// sure is the part of the noise below which no better attention is looked for.
	sure = 0.05
	// looksGood and looksSure are the parts of the golden's distance from the candidate within which
	// a fault is made in full, and within which its variants are tried.
	looksGood, looksSure = 2.0 / 3, 1.0 / 3
	// freely is by how much better a sum with a fitted factor must fit than one without.
	freely = 8
	// noFactor is the smallest factor of a term.
	noFactor = 1e-3
	// anglePrecision, sizePrecision and thetaPrecision are how exact recorded cosines and sines are:
	// in bfloat16 to 2^-8.
	anglePrecision, sizePrecision, thetaPrecision = 1e-3, 0.02, 0.01
	// sineAtZero is how large a sine at position 0 may be.
	sineAtZero = 1e-6
	// configTheta is how far the config's theta may be from one that rounded angles show.
	configTheta = 0.1
	// cosineMost is the largest cosine, with rounding.
	cosineMost = 1.01
)
