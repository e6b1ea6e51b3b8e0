package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// ULPs is the distance of finite pairs in units in the last place of the candidate's type: the
// number of steps between neighbouring values of that type, from the golden value, rounded to it,
// to the candidate's. −0 is 0. For integers it is |a−g|.
type ULPs struct {
	Max, Mean float64
	MaxIndex  int // first element with Max; −1 if no pair is finite
}

// grid describes the values of a float type: p significant bits, the exponent of the least normal
// number, and the largest number.
type grid struct {
	digits, minExp int
	largest        float64
}

func gridOf(d tensor.DType) grid {
	switch d {
	case tensor.F8E4M3FN:
		return grid{4, -6, 448}
	case tensor.F8E4M3FNUZ:
		return grid{4, -7, 240}
	case tensor.F8E5M2:
		return grid{3, -14, 57344}
	case tensor.F8E5M2FNUZ:
		return grid{3, -15, 57344}
	case tensor.F8E8M0FNU:
		return grid{1, -127, 0x1p127}
	case tensor.F16:
		return grid{11, -14, 65504}
	case tensor.BF16:
		return grid{8, -126, 0x1.fep127}
	case tensor.F32:
		return grid{24, -126, math.MaxFloat32}
	default:
		return grid{53, -1022, math.MaxFloat64}
	}
}

// ordinal counts the steps from 0 to |x|, rounded to the grid. A number that rounds beyond the
// largest one is one step after it.
func (g grid) ordinal(x float64) uint64 {
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

// distance returns the number of steps between two finite values.
func (g grid) distance(x, y float64) float64 {
	a, b := g.ordinal(x), g.ordinal(y)
	switch {
	case math.Signbit(x) != math.Signbit(y):
		return float64(a + b)
	case a < b:
		return float64(b - a)
	default:
		return float64(a - b)
	}
}

// stepsToOne is the distance from 0 to 1 in a type, or in an integer type from 0 to the largest
// value.
func stepsToOne(d tensor.DType) float64 {
	switch {
	case d.IsFloat():
		return float64(gridOf(d).ordinal(1))
	case d == tensor.Bool:
		return 1
	}
	return math.Ldexp(1, 8*d.Size()) - 1
}

// ulps measures all finite pairs.
func ulps(golden, actual *tensor.Tensor) ULPs {
	u := newULPs(actual.DType())
	walkPairs(golden, actual, u.add)
	return u.result()
}

type ulpTotals struct {
	distance func(g, a, d float64) float64
	u        ULPs
	total    sum
	n        int
}

func newULPs(actual tensor.DType) *ulpTotals {
	t := &ulpTotals{u: ULPs{Max: -1, MaxIndex: -1}}
	if actual.IsFloat() {
		grid := gridOf(actual)
		t.distance = func(g, a, _ float64) float64 { return grid.distance(g, a) }
	} else {
		t.distance = func(_, _, d float64) float64 { return d }
	}
	return t
}

func (t *ulpTotals) add(p *pair) {
	if !p.finite {
		return
	}
	n := t.distance(p.g, p.a, p.d)
	t.n++
	t.total.add(n)
	if n > t.u.Max {
		t.u.Max, t.u.MaxIndex = n, p.index
	}
}

func (t *ulpTotals) result() ULPs {
	u := t.u
	u.Max, u.Mean = max(u.Max, 0), t.total.value()/float64(max(t.n, 1))
	return u
}
