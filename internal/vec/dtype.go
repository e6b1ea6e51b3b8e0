package vec

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// Narrow is a type of fewer bits than the one in which numbers are kept.
type Narrow struct {
	Name     string
	Bits     int     // of the significand, the leading one included
	Least    int     // the exponent of the smallest normal number
	Limit    float64 // the largest finite number
	Saturate bool    // larger numbers become Limit
}

// Half is IEEE 754 binary16.
var Half = Narrow{"float16", 11, -14, 65504, false}

// Narrows are the types that numbers are rounded to (float8: arXiv 2209.05433).
var Narrows = []Narrow{
	{"bfloat16", 8, -126, math.MaxFloat32, false},
	Half,
	{"float8_e4m3", 4, -6, 448, true},
	{"float8_e5m2", 3, -14, 57344, true},
	{"tf32", 11, -126, math.MaxFloat32, false},
}

// Overflowing are the types that models overflow.
var Overflowing = []Narrow{
	Half, {Name: "float8_e4m3", Limit: 448}, {Name: "float8_e4m3fnuz", Limit: 240},
	{Name: "float8_e5m2", Limit: 57344},
}

// Round rounds to the type, to nearest and ties to even.
func (n Narrow) Round(x float64) float64 {
	if x == 0 || !IsFinite(x) {
		return x
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-1, n.Least)-(n.Bits-1))
	y := math.RoundToEven(x/unit) * unit
	if n.Saturate {
		return Clip(y, n.Limit)
	}
	return y
}

// Epsilon is the largest relative error of rounding.
func (n Narrow) Epsilon() float64 { return math.Ldexp(1, -n.Bits) }

// Holds reports whether a number is one of the type.
func (n Narrow) Holds(x float64) bool { return n.Round(x) == x }

// Clip returns x between −limit and limit.
func Clip(x, limit float64) float64 { return math.Max(-limit, math.Min(limit, x)) }

// NarrowerThan lists the types that have clearly fewer bits than others.
func NarrowerThan(types ...tensor.DType) []Narrow {
	return slices.DeleteFunc(slices.Clone(Narrows), func(n Narrow) bool {
		return slices.ContainsFunc(types, func(t tensor.DType) bool { return n.Epsilon() < clearlyFewer*t.Epsilon() })
	})
}
