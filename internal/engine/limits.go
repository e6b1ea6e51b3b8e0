package engine

// What an engine may say while it runs. The runners say a dozen events for a case, and shorten their
// errors to 4000 characters.
const (
	// maxEvents is how many events are passed on: more than anyone reads.
	maxEvents = 10_000

	// maxWarnings is how many warnings are kept.
	maxWarnings = 100

	// maxText is how many bytes each text of an event may have.
	maxText = 16 << 10
)

// minFree is the share of a GPU's memory that is free where no other process is using it: engines
// take most of it. Not measured.
const minFree = 0.5
