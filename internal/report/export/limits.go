package export

// The limits of a page that still opens at once.
const (
	maxRows    = 8000 // rows of the table
	maxLines   = 30   // lines of a row's details
	maxBins    = 640  // bins of a histogram; rows have fewer
	maxText    = 1000 // characters of one string
	maxPaths   = 100  // runs along execution paths
	maxColumns = 256  // of them
	maxTexts   = 12   // texts of a generation that are drawn
	maxTokens  = 256  // of each
)
