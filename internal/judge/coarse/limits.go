package coarse

// The limits of this package.
const (
	// offGrid is by which part of a step numbers of 8 bits in float32 may be off their grid: 256 roundings
	// of 2⁻²⁴ are 1.5e-5. By reason.
	offGrid = 1e-4

	// leastValues is how many different numbers a step apart are taken for numbers of 8 bits. By reason.
	leastValues = 8
)
