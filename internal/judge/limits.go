package judge

import "github.com/goparity/goparity/compare"

// The limits of this package. What they were measured on, and in which words, docs/thresholds.md
// says: clean are models without a fault, faults stand for the planted layer.
const (
	// noiseRatio is how many times the reference's own distance from float64 still counts as noise.
	// Clean: float32 ≤ 2.2, bfloat16 ≤ 1.9, float16 ≤ 2.0, but 7.7 with massive channels: explained
	// covers that one. Zoo, November 2026.
	noiseRatio = 3

	// headroom is how many times the largest row of its output a layer is taken to make of one row
	// of its input, at most: norms divide large rows. Not varied; what excess comes to with it
	// stands at localise's jump.
	headroom = 4

	// carried is the part of an output's error that must not come through to the output that is to
	// show that it does no harm: of a sum all of it does, of a rewrite none. By reason, not measured.
	carried = 0.5
	// carriedElements is of how many elements that is told: it costs time, and judges nothing.
	carriedElements = 1 << 20

	// severalProducts is how many products have to be off as TF32 makes them where the first of them
	// would be accused. One is a layer in float16.
	severalProducts = 2

	// leastTF32 and mostTF32 are the relative L2 of a product whose operands have 10 bits of mantissa:
	// uniform rounding makes 2.9e-4, cutting twice that. unlikeTF32 is the cosine of error and value,
	// or byChance/√n of n elements. Measured on 3 models in 4 forms, November 2026: 2.5e-4 to 3.6e-4.
	// Drifts that were planted in all products have 6e-5.
	leastTF32, mostTF32, unlikeTF32, byChance = 1.5e-4, 8e-4, 0.1, 5

	// fewElements is below how many elements a tensor's own size says little of what it is made of:
	// as many as make a row a short one, in package compare. Of n normal numbers the norm is half of
	// what is expected in 1 of 3 (n = 1), in 1 of 50 (n = 4), and hardly ever from 16 on.
	fewElements = 64

	// fewRows is below how many tokens of a forward pass a tensor may be off as far as a row may: in one
	// pass these are rows of a larger tensor. Clean runs of 34 architectures in 16 bits reach 1.47 times
	// the limit of a tensor with 2 tokens, 1.25 with 4, and stay below 1 with 10, November 2026.
	fewRows = 8

	// scoreNoise is by how many roundings of a row's spread of scores its probabilities may err. Clean
	// layers on golden inputs: 1.05 at most, of 260 clean runs, November 2026.
	scoreNoise = 2

	// stepNoise is by how much a number may err in steps of int8, of which the largest of its block is
	// 127: four roundings of float32.
	stepNoise = 127 * 4 * 0x1p-24
	// roundedInputs is the relative L2 up to which an output may follow from inputs that were rounded
	// another way, where the reference was not run without rounding them. Logits of two layers 0.034,
	// of 4 layers and 512 inputs 0.06: MAX and llama.cpp against the reference that rounds nothing.
	roundedInputs = 0.1
	// roundedTwice is how many times what rounding costs the reference an output may be off that follows
	// from other roundings: those of two runs that have nothing in common are √2 apart.
	roundedTwice = 2
	// layerRounding is how many times what rounding its input makes of it a layer's output may be off.
	layerRounding = 2

	// mostExperts is how many scores a choice is made of, at most, where it is looked for ties.
	mostExperts = 1 << 10

	// otherWay is how far the row of a token is off, as a part of it, that may have been given to other
	// experts. Ties ≥ 0.4; roundings ≤ 0.1 in such rows.
	otherWay = 0.25
	// leastChosen is of how many integers it is no chance that they are the places of the largest
	// scores: of two experts out of four in each row, one in 1296.
	leastChosen = 8
	// leastVocabulary is from how many logits on they are of tokens, and below it of labels. By reason.
	leastVocabulary = 64
	// tokenParts is into how many parts the rows of logits are divided among the cores.
	tokenParts = 64
	// standsOut is from how many times the error of its row on that of a logit is looked at, in rows of more
	// than 150. It saves time, and judges nothing: roundings have 4 to 5 in rows of 1000 to 150,000.
	standsOut = 5.5

	// surelyLabel is how much more than equal the largest probability of a label is, where a head is likely
	// to be trained; it makes a note and judges nothing. Heads that transformers made up: 0.42 at most, of 2
	// to 20 labels and 12 seeds each, November 2026.
	surelyLabel = 0.4

	// maxPlaces is how many places of a comparison are diagnosed: the first divergence, and others
	// that do not follow from it. It costs time, and judges nothing.
	maxPlaces = 4

	// aloneFloors is by how many noise floors a tensor has to miss what the reference's operation makes of
	// the candidate's own inputs, and how much better a second fault has to fit. Not measured.
	aloneFloors = 8

	// leastTokens is of how many tokens token 0 tells something, and mostSymptoms up to how many elements a
	// tensor is looked at for what its error looks like. By reason; they judge nothing.
	leastTokens, mostSymptoms = 3, 1 << 24
	sampledElements           = 1 << 16 // of which it is told whether the error is a function of the value
	// mostlyFollows is the part of the squared error that an element's own value says, from which the error
	// is said to be a function of it. Of 64, 256 and 1024 numbers noise has 0.55, 0.47 and 0.17 at most,
	// smooth functions 0.79, 0.97 and 0.99 at least, by simulation.
	mostlyFollows = 0.9

	// maxOthers is how many of the layers that are wrong besides the first divergence get a line.
	maxOthers = 3

	// maxExplained is how many failing rows of a report get their details: as many as a person
	// reads. One fault makes everything after it fail.
	maxExplained = 20

	// maxRules is how many of the rules that would join what is left are shown.
	maxRules = 6
)

// explained is what may pass in 16 bits where each layer is seen to make no more of what came in
// than rounding does. Clean: ≤ 0.07 of a tensor and 0.54 of a row (first measurement), 0.063 and
// 0.158 in the zoo, November 2026.
var explained = compare.Limits{RelL2: 0.2, RowRelL2: 1}
