package supervise

// The log of a program.
const (
	// tailLines and tailBytes limit what errors have of the end of a log.
	tailLines = 200

	// tailBytes: see tailLines.
	tailBytes = 64 << 10

	// maxLine is the longest line of progress, in bytes. The rest of a longer one is dropped.
	maxLine = 64 << 10
)
