package op

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

// Scaled rounds runs of size numbers, all of them for 0, each with a scale that makes the largest one
// the largest of the type.
func (n Narrow) Scaled(x []float64, size int) []float64 {
	out := make([]float64, len(x))
	if size == 0 {
		size = len(x)
	}
	for at := 0; at < len(x); at += size {
		run := x[at:min(at+size, len(x))]
		scale := MaxAbs(run) / n.Limit
		if scale == 0 {
			scale = 1
		}
		for i, v := range run {
			out[at+i] = n.Round(v/scale) * scale
		}
	}
	return out
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

// GroupScales returns max|w| of each group of size elements of each row: the scale of a weight that
// was quantised symmetrically, times the largest whole number (GPTQ, arXiv 2210.17323).
func GroupScales(w [][]float64, size int) [][]float64 {
	out := make([][]float64, len(w))
	for r, row := range w {
		for at := 0; at < len(row); at += size {
			m := 0.0
			for _, x := range row[at:min(at+size, len(row))] {
				m = max(m, math.Abs(x))
			}
			out[r] = append(out[r], m)
		}
	}
	return out
}

// OnGrid reports whether the first rows of a weight are whole numbers up to top, times the scale of
// their group over top.
func OnGrid(w [][]float64, size int, top float64) bool {
	w = w[:min(gridRows, len(w))]
	for r, scales := range GroupScales(w, size) {
		for c, x := range w[r] {
			n := x / scales[c/size] * top
			if scales[c/size] > 0 && math.Abs(n-math.Round(n)) > nearWhole*max(1, top/32) {
				return false
			}
		}
	}
	return len(w) > 0
}

// Rescaled returns w with the scale of each group replaced; top is the largest whole number that w
// is rounded to first, 0 for no rounding.
func Rescaled(w [][]float64, size int, top float64, scale func(r, c int) float64) []float64 {
	var out []float64
	for r, scales := range GroupScales(w, size) {
		for c, x := range w[r] {
			if own := scales[c/size]; own > 0 {
				n := x / own
				if top > 0 {
					n = math.Round(n*top) / top
				}
				x = n * scale(r, c)
			}
			out = append(out, x)
		}
	}
	return out
}
