package structure

// The limits of what is said of an error. Measured in the zoo, November 2026: internal/exam/thresholds.md.
const (
	// gap is how many times the least wrong line must be as far off as the worst right one before a
	// place is named. Planted rows, columns and heads ≥ 49 (bfloat16), ≥ 1e5 (float32); lines that
	// are wrong by chance ≤ 3.6.
	gap = 4
	// headPart is the part of a head's lines that are wrong where the head is. Not measured: heads
	// of the zoo are wrong in all of their columns or in none; with half of them it is no head.
	headPart = 0.9

	mostRewritten = 1 << 22 // elements of a port by which a map is told; it costs memory, and judges nothing
	mostLines     = 1 << 14 // lines whose order is looked for: it costs time, and judges nothing
	// leastRows is how many rows, or columns, one number of a map has to explain, and leastMapped
	// how many elements one factor. By reason: fewer would be explained by anything.
	leastRows, leastMapped = 3, 32
	// explains is how many times nearer a map must come than no map: numbers that are fitted to noise
	// come a little nearer, too. Rewrites ≥ 10 in bfloat16.
	explains = 4

	// farOff is how many times the limit of a row its prediction may be off before the other rows are looked at:
	// rows of few numbers are measured otherwise. By reason.
	farOff = 100

	// widestShadow is how many times the floor two lines may be apart in one direction: noise of n
	// elements is as large there as its norm, in one case of three.
	widestShadow = 6
)
