package judge

// The limits of this package. What they were measured on, and in which words, internal/exam/thresholds.md
// says: clean are models without a fault, faults stand for the planted layer.
const (
	// noiseRatio is how many times the reference's own distance from float64 still counts as noise.
	// Clean: float32 ≤ 2.2, bfloat16 ≤ 1.9, float16 ≤ 2.0, but 7.7 with massive channels. Zoo, November
	// 2026.
	noiseRatio = 3

	// leastZeros is from how many zeros on a tensor says nothing: a few may be what someone wants to compare. By reason.
	leastZeros = 16

	// leastVocabulary is from how many logits on they are of tokens, and below it of labels. By reason.
	leastVocabulary = 64
	// surelyLabel is how much more than equal the largest probability of a label is, where a head is likely
	// to be trained; it makes a note and judges nothing. Heads that transformers made up: 0.42 at most, of 2
	// to 20 labels and 12 seeds each, November 2026.
	surelyLabel = 0.4

	// maxOrder is how many layers that ran in another order are named.
	maxOrder = 5

	// maxPlaces is how many places of a comparison are diagnosed: the first divergence, and others
	// that do not follow from it. It costs time, and judges nothing.
	maxPlaces = 4

	// mostBefore is how many tensors before a place are tried in the place of what it takes: the nearest.
	mostBefore = 60
	// mostBegin is the largest first position that models have: 2 in RoBERTa and BART.
	mostBegin = 2
	// mostBeside is among how many tensors after it those are that may have been made first.
	mostBeside = 12
	// mostMade values without a record, among mostNear operators on each side of a place, and mostRemade sources that are made
	// of something else are tried, too: the nearest. They cost time, and judge nothing.
	mostMade, mostNear, mostRemade = 16, 160, 24
	// cheapAgain is how many multiply-adds an element what makes one of them may take, as a norm does.
	cheapAgain = 40

	// onBoundary is which part of the values of a rounded cache may lie so near to the boundary between two steps that
	// noise decides, and stepNoise by which part of a step others may be off. In mlx-lm's int8 caches 28 of 590,208 did, and
	// others were off by 0.002; with groups of another size 93,152 are off by more. November 2026.
	onBoundary, stepNoise = 1e-3, 0.05

	// mostCalls is how many calls of a layer are joined by value at the most, as they may be in another order: each is
	// compared with all. It costs time, and judges nothing.
	mostCalls = 8

	// fewRows is below how many rows of a forward pass all passes together may show a map that it does not show by
	// itself: one number for each column takes three. By reason.
	fewRows = 8

	// mostOperands is how many outputs inside a container are taken to go into what its code makes next,
	// where no program says it. It bounds the time of flat dumps; the place is the first in any case.
	mostOperands = 32

	// cheap is up to how many multiply-adds the pieces of a run that passes are replayed, to warn of what
	// its tolerances hide: some tenths of a second. It costs time, and judges nothing.
	cheap = 2e8

	// maxOthers is how many of the layers that are wrong besides the first divergence get a line.
	maxOthers = 3

	// maxExplained is how many failing rows of a report get their details: as many as a person
	// reads. One fault makes everything after it fail.
	maxExplained = 20
)

// inMemory is how many bytes of replayed tensors are not written to a file. By reason.
const inMemory = 256 << 20
