package vec

const (
	// normalCond is the condition number beyond which normal equations tell nothing. Up to 3.3e6 in
	// the zoo, never beyond.
	normalCond = 1e14
	// clearlyFewer is the ratio of roundings from which a type has clearly fewer bits: three of
	// them.
	clearlyFewer = 8

	mostRead     = 1 << 25 // elements that are decoded at once: 256 MB of float64
	followsLeast = 64      // elements that tell whether errors follow the values
	followsMost  = 1 << 16 // elements that are looked at for it
)

// denies is the largest value by which an additive mask denies: −1e4 as bfloat16 has it. It is the
// format's, not measured; biases that are added to scores are above −1e3.
const denies = -9984

// named is how many of the numbers of a mask are named.
const named = 4
