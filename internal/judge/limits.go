package judge

import "github.com/goparity/goparity/compare"

// The limits of this package, with what they were measured on.
const (
	// noiseRatio is how many times the reference's own distance from float64 still counts as noise.
	noiseRatio = 3

	// roundings is by how much errors of 16 bits may exceed the default limits where no layer made
	// them. How fast they add up depends on depth and on sums that cancel.
	roundings = 6

	// maxPlaces is how many places of a comparison are diagnosed: the first divergence, and others
	// that do not follow from it.
	maxPlaces = 4

	// maxExplained is how many failing rows of a report get their details: as many as a person
	// reads. One fault makes everything after it fail.
	maxExplained = 20
)

// explained is what may pass in 16 bits where each layer is seen to make no more of what came in
// than rounding does. The largest error of a clean pair was 0.07 of a tensor and 0.54 of a row.
var explained = compare.Limits{RelL2: 0.2, RowRelL2: 1}
