package replay

import (
	"math"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// Rounding is how each float result of a piece is rounded once more. Whole numbers (masks, positions,
// counts) are exact in every encoding, so that they are left alone, as are tensors of one element,
// infinities and what is beyond 1e30.
type Rounding int

// The ways to round.
const (
	Exact   Rounding = iota // as recorded
	Nearest                 // to nearest, ties to even
	Zero                    // toward zero
	Shake                   // × (1 + 2⁻²⁴·u), u in [−1, 1), the same at each run
)

// Mode says how a piece is run otherwise than it was recorded. The zero Mode runs it as recorded.
type Mode struct {
	Round    Rounding
	To       tensor.DType                 // for Nearest and Zero: BF16, F16
	Wide     bool                         // float64 throughout: no result is rounded to a narrower float
	Operands func(*Array, Operand) *Array // what products and tables have in place of an operand; nil for itself
	// Ties has sort and topk give equal numbers in the other order. torch keeps none, so that a result
	// which it changes has rows in an order that nobody knows.
	Ties bool
	// Choices has topk alone choose others of equal numbers.
	Choices bool
}

func (m *Mode) isZero() bool {
	return m.Round == Exact && !m.Wide && m.Operands == nil && !m.Ties && !m.Choices
}

// Operand says what an operand is that a product multiplies, or of which rows are looked up.
type Operand struct {
	Weight   bool // it is a weight of two axes or more, or numbers of one that were moved
	Weighted bool // it is multiplied with one, or is one
	Table    bool // its rows are looked up
	Sum      int  // the axis that the product sums over, or that a row of a table lies along
}

// vast is where numbers only deny, as masks do; it is no limit of a type that is in use.
const vast = 1e30

// round rounds a result in place. seed tells the operators of a program apart.
func (m *Mode) round(a *Array, seed uint64) {
	if a.Len() < 2 || !a.isFloat() || a.dtype == tensor.F64 {
		return
	}
	roundAll(m, a.d, seed)
	if roundAll(m, a.f, seed); a.f != nil && m.Round == Shake {
		roundTo(a.f, a.dtype)
	}
}

func roundAll[T floating](m *Mode, x []T, seed uint64) {
	if m.Round == Exact {
		return
	}
	for i, v := range x {
		w := float64(v)
		if math.Abs(w) < 1<<24 { // float32 has no fractions beyond
			if w == float64(int32(w)) {
				continue
			}
		} else if !(math.Abs(w) <= vast) || w == math.Trunc(w) {
			continue
		}
		switch {
		case m.Round == Shake:
			x[i] = T(w * (1 + 0x1p-24*noise(seed, uint64(i))))
		case m.Round == Nearest && m.To == tensor.F16:
			x[i] = T(smallfloat.RoundF16(float32(w)))
		case m.Round == Nearest:
			x[i] = T(smallfloat.RoundBF16(float32(w)))
		case m.To == tensor.F16:
			x[i] = T(zeroF16(float32(w)))
		default:
			x[i] = T(math.Float32frombits(math.Float32bits(float32(w)) &^ 0xffff))
		}
	}
}

// zeroF16 rounds to a binary16 toward zero.
func zeroF16(v float32) float32 {
	const least = 0x1p-14 // the smallest normal number; those below are multiples of 2⁻²⁴
	switch a := math.Abs(float64(v)); {
	case a < least:
		return float32(math.Trunc(float64(v)*0x1p24) * 0x1p-24)
	case a >= 65504:
		return float32(math.Copysign(65504, float64(v)))
	}
	return math.Float32frombits(math.Float32bits(v) &^ 0x1fff)
}

// noise returns a number in [−1, 1) by a hash (splitmix64) of a position.
func noise(seed, i uint64) float64 {
	z := (seed<<40 + i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64(int64(z^z>>31)) * 0x1p-63
}

// roundTo rounds float32 to a narrower type, to nearest and ties to even.
func roundTo(x []float32, t tensor.DType) {
	switch t {
	case tensor.F32:
	case tensor.BF16:
		for i, v := range x {
			x[i] = smallfloat.RoundBF16(v)
		}
	case tensor.F16:
		for i, v := range x {
			x[i] = smallfloat.RoundF16(v)
		}
	case tensor.F8E4M3FN:
		for i, v := range x {
			x[i] = smallfloat.RoundE4M3FN(v)
		}
	default:
		fail("no rounding to %s", t)
	}
}
