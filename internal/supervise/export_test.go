package supervise

var (
	Mask      = mask
	ReadLines = readLines
)
