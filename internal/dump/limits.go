package dump

const (
	// slip is how many bytes of the name in a .max file may differ from the file's before the file
	// was renamed, and is not damaged. Not measured.
	slip = 2

	maxPrinted = 1 << 26 // elements of a tensor of which a log shows the corners
)
