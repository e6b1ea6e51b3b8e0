package page

// The limits of a page that still opens at once.
const (
	maxRows      = 8000 // rows of the table
	maxLines     = 30   // lines of a row's details
	maxBins      = 640  // bins of a histogram; rows have fewer
	maxText      = 500  // characters of one string
	maxCauses    = 10   // causes
	maxFrontier  = 20   // layers of the frontier
	maxNotes     = 50   // notes
	maxPaths     = 100  // runs along execution paths
	maxServed    = 60   // answers of a server, causes and notes
	maxCosts     = 1000 // layers with what they took
	maxUnmatched = 300  // tensors that only one side has, of each
)
