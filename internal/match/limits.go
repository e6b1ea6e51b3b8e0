package match

// The limits of the search. They were chosen, not measured, and bound what it costs to match runs
// that have nothing in common.
const (
	// maxDropped is how many wrapper words are dropped from the fronts of two labels together:
	// model.model.language_model.layers.0 against model.layers.0 takes four.
	maxDropped = 6

	// minVotes is how many layers must agree on an unknown prefix before it is learned: a name or two
	// may agree by chance.
	minVotes = 3

	// maxPrefix is how many segments a learned prefix has at most.
	maxPrefix = 8

	// maxLearned is how many prefixes a round learns. A model has one for each of its parts, text and
	// vision; each search reads the names of all layers that are not joined yet.
	maxLearned = 64

	// maxHints is for how many layers without partner the nearest name is looked up. Each takes a
	// reading of all labels.
	maxHints = 64

	// maxOrder is how many differences of the order are named.
	maxOrder = 5
)
