package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// ULPs is the largest distance of a finite pair in units in the last place of the candidate's type: the number of
// steps between neighbouring values of that type, from the golden value, rounded to it, to the candidate's. −0 is
// 0. For integers it is |a−g|.
type ULPs struct {
	Max      float64
	MaxIndex int // first element with Max; −1 if no pair is finite
	grid     *grid
}

// grid describes the values of a float type: p significant bits, the exponent of the least normal
// number, and the largest number.
type grid struct {
	digits, minExp int
	largest        float64
}

var grids = map[tensor.DType]*grid{
	tensor.F8E4M3FN: {4, -6, 448}, tensor.F8E4M3FNUZ: {4, -7, 240}, tensor.F8E5M2: {3, -14, 57344}, tensor.F8E5M2FNUZ: {3, -15, 57344},
	tensor.F8E8M0FNU: {1, -127, 0x1p127}, tensor.F16: {11, -14, 65504}, tensor.BF16: {8, -126, 0x1.fep127},
	tensor.F32: {24, -126, math.MaxFloat32}, tensor.F64: {53, -1022, math.MaxFloat64},
}

// ordinal counts the steps from 0 to |x|, rounded to the grid. A number that rounds beyond the
// largest one is one step after it.
func (g *grid) ordinal(x float64) uint64 {
	x = math.Abs(x)
	switch g.digits {
	case 53: // the bits of IEEE numbers count the steps
		return math.Float64bits(x)
	case 24:
		return uint64(math.Float32bits(float32(x)))
	}
	e := max(int(math.Float64bits(x)>>52)-1023, g.minExp) // 2^e ≤ x, or the exponent of subnormals
	step := math.Float64frombits(uint64(1023+e-g.digits+1) << 52)
	m := math.RoundToEven(x / step)
	if m*step > g.largest {
		return g.ordinal(g.largest) + 1
	}
	return uint64(e-g.minExp)<<(g.digits-1) + uint64(m)
}

// stepsToOne is the distance from 0 to 1 in a type, or in an integer type from 0 to the largest
// value.
func stepsToOne(d tensor.DType) float64 {
	switch {
	case d.IsFloat():
		return float64(grids[d].ordinal(1))
	case d == tensor.Bool:
		return 1
	}
	return math.Ldexp(1, 8*d.Size()) - 1
}

func newULPs(actual tensor.DType) ULPs { return ULPs{MaxIndex: -1, grid: grids[actual]} }

// add takes the next pair.
func (u *ULPs) add(p pair) {
	if !p.finite {
		return
	}
	n := p.d
	if u.grid != nil {
		g, a := u.grid.ordinal(p.g), u.grid.ordinal(p.a)
		if n = float64(max(g, a) - min(g, a)); math.Signbit(p.g) != math.Signbit(p.a) {
			n = float64(g + a)
		}
	}
	if u.MaxIndex < 0 || n > u.Max {
		u.Max, u.MaxIndex = n, p.index
	}
}
