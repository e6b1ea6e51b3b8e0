package quant

const (
	// nearWhole is the distance from whole numbers, in units of a grid of 4 bits, up to which a number lies on it.
	nearWhole = 0.01
	// gridTop is the largest number of a weight whose grid is found by its values.
	gridTop = 63
	// mostSteps is how many steps of a grid two neighbouring numbers of a group may be apart.
	mostSteps = 4
)
