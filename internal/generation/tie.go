package generation

import (
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// Noise is by how much the difference of two scores of a row may err in an encoding: the noise floor of
// a row times the spread of its scores, but no less than one rounding of each of the two, of which
// largest is the larger one's size.
//
//	max(floor·spread, 2·ε·largest)
func Noise(d tensor.DType, spread, largest float64) float64 {
	return max(compare.Floor(d).RowRelL2*spread, 2*d.Epsilon()*largest)
}

// WithinNoise reports whether a choice between two scores may come either way, a tie. What follows from
// the choice is another text altogether, which no tolerance is made for: the reference's gap between them is
// within the noise of their difference, and the candidate's own gap differs from it by no more than that.
// own is NaN where the candidate does not tell it.
func WithinNoise(gap, own, noise float64) bool {
	return math.Abs(gap) <= noise && !(math.Abs(own-gap) > noise)
}
