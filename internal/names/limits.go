package names

// The limits of the search. Those that are said to be measured were measured with the renamed zoo of
// internal/exam/foreign, November 2026; the others bound what the search costs.
const (
	// maxSample is how many elements of a tensor are looked at, in runs of sampleRun elements.
	maxSample = 1024
	sampleRun = 64

	// projections is how many random projections tell samples apart before they are compared.
	projections = 16

	// minElements is how many elements a tensor has at least to be known by its value.
	minElements = 8

	// minValues is how many different values of two runs must agree, or be alike, for these to be of
	// one model. One may be an embedding that two models share.
	minValues = 2

	// alike is the least correlation of two outputs of one layer on both sides of an error, and
	// alikeSigmas how many standard deviations of the chance it is, 1/√n.
	alike       = 0.5
	alikeSigmas = 8

	// margin is by how much a choice must be better than the next one.
	margin = 0.2

	// minScore is what a pair must have besides its place in the order.
	minScore = 0.6

	// maxCells is the size of one alignment: longer stretches are aligned from their beginning, part
	// by part.
	maxCells = 1 << 20

	// maxRounds is how often what was aligned is generalised and the rest aligned again.
	maxRounds = 12

	// maxParts is how many layers one fused layer stands for at most.
	maxParts = 4

	// maxNumbers is how many numbers of a name may be left open: block, expert, part.
	maxNumbers = 4

	// maxTries is in how many blocks a fused layer is searched for.
	maxTries = 3

	// maxWhole is the size of tensors that are read whole, to find transposed ones.
	maxWhole = 1 << 20

	// maxOpen is how many layers without partner are searched for others in another layout.
	maxOpen = 256
)
