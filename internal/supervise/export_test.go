package supervise

var ReadLines = readLines

// LogHead and LogTail are how much is kept of a log that is longer.
const (
	LogHead = logHead
	LogTail = logTail
)
