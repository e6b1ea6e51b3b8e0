package sanitize

const (
	// minSubstring is from how many bytes on the value of a variable is overwritten wherever it stands.
	// A shorter one is overwritten only where it stands alone: a part of a name can be equal to it
	// by chance. Not measured.
	minSubstring = 8

	// minWord is the same for a value that could be a word or the name of a layer, "attention". Not
	// measured.
	minWord = 12

	// shortest is how many bytes the value of a variable must have to be a secret. Not measured.
	shortest = 4

	// reach is how many bytes of a log or a file are looked at together, at least: as long as a
	// private key in one line. A secret that is longer may be found in parts only.
	reach = 16 << 10

	// context is how many bytes before the beginning of a form are looked at: as long as the name of
	// a variable. Not measured.
	context = 128
)
