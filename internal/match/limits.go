package match

// The limits of Runs. They were chosen, not measured, and bound what it costs to match runs
// that have nothing in common.
const (
	// minVotes is how many layers must agree on an unknown prefix before it is learned: a name or two
	// may agree by chance.
	minVotes = 3
	// surely is the score of equal labels, more than any wrapper words can cost.
	surely = 1000
	// maxPrefix is how many segments a learned prefix has at most.
	maxPrefix = 8
	// maxLearned is how many prefixes a round learns. A model has one for each of its parts, text and
	// vision; each search reads the names of all layers that are not joined yet.
	maxLearned = 64
	// maxHints is for how many layers without partner the nearest name is looked up. Each takes a
	// reading of all labels.
	maxHints = 64
)

// The limits of Propose. They were chosen, not measured: no verdict depends on them, and each rule
// says what speaks for it. internal/exam/foreign counts how many rules are wrong.
const (
	// maxSample is how many elements of a tensor are looked at.
	maxSample = 1024
	// sampleRun is how many elements of a sample follow one another in the tensor.
	sampleRun = 64
	// reach is how many standard deviations the projection of a difference may be.
	reach = 5
	// minElements is how many elements a tensor has at least to be known by its value.
	minElements = 8
	// minValues is how many different values of two runs must agree, or be alike, for these to be of
	// one model. One may be an embedding that two models share.
	minValues = 2
	// alike is the least correlation of two outputs of one layer on both sides of an error.
	alike = 0.5
	// alikeSigmas is how many times the correlation of two random samples, 1/√n, that must be.
	alikeSigmas = 8
	// margin is by how much a choice must be better than the next one. Names that say the same count
	// for 1, inputs that are equal for 1.5.
	margin = 0.2
	// minScore is what a pair in an alignment must have; 1 is what only shapes and place speak for.
	minScore = 0.6
	// maxAligned is how many layers of a side are aligned at once: longer stretches are aligned part by part.
	maxAligned = 1024
	// maxRounds is how often what was aligned is generalised and the rest aligned again.
	maxRounds = 12
	// maxParts is how many layers one fused layer stands for at most.
	maxParts = 4
	// maxNumbers is how many numbers of a name may be left open: block, expert, part.
	maxNumbers = 4
	// maxTries is in how many blocks a fused or a transposed layer is searched for.
	maxTries = 3
	// maxWhole is the size, in elements, of tensors that are read whole to find transposed ones.
	maxWhole = 1 << 20
	// maxOpen is how many layers without partner are searched for others in another layout.
	maxOpen = 256
	// maxRules is how many of the rules that would join what is left are shown.
	maxRules = 6
)
