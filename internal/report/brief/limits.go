package brief

// How long a brief may be, and what of it gives way. Of the cost of a text its quotes count twice, as JSON
// writes them.
const (
	maxSize   = 2048 // bytes of either form, with the line break at its end
	leastText = 16   // bytes that a sentence keeps at least; then the next command goes, too
	leastName = 64   // bytes that a name keeps at least: those of layers, ports and causes are seldom longer
)
