package setting

import "time"

// How long the cause of a failure is searched for, all places of a comparison together. The longest
// search of the zoo takes 1.3 s; no answer of it changed under a load of ten processes a core.
const (
	fastBudget = 1500 * time.Millisecond // of a search that is asked to be fast
	fullBudget = 10 * time.Second        // of one that is not
)
