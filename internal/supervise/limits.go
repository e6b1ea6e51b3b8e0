package supervise

// The log of a program. A log of MAX has a few MiB at most; of an endless one the beginning says
// what was started, and the end what went wrong.
const (
	// logHead is how many bytes of the beginning are kept.
	logHead = 16 << 20

	// logTail is how many bytes of the end are kept of a log that is longer. It is held in memory,
	// twice at most.
	logTail = 4 << 20

	// tailLines and tailBytes limit what errors have of the end of a log.
	tailLines = 200

	// tailBytes: see tailLines.
	tailBytes = 64 << 10

	// maxLine is the longest line of progress, in bytes. The rest of a longer one is dropped.
	maxLine = 64 << 10
)
