package brief

// How long a brief may be, and what of it gives way first. Of the cost of a text its quotes count
// twice, as JSON writes them.
const (
	maxSize = 2048 // bytes of either form, with the line break at its end
)
