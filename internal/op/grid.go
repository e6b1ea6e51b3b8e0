package op

import (
	"math"
	"slices"
)

// Grid is a weight that was quantised to whole numbers q from 0 to 15, with a scale and a zero point
// for each group of inputs: w = scale·(q − zero) (AWQ, arXiv 2306.00978).
type Grid struct {
	Size, Groups int         // inputs of a group, groups of a row
	Q            [][]float64 // by row and input
	Scale, Zero  [][]float64 // by row and group
}

// gridTop is the largest whole number.
const gridTop = 15

// GridOf finds the grid on which a weight lies, in groups of size inputs; nil for none. The smallest
// number of a group that has negative ones is taken to be q = 0.
func GridOf(w [][]float64, size int) *Grid {
	if len(w) == 0 || len(w[0])%size != 0 || len(w[0]) == 0 {
		return nil
	}
	g := &Grid{Size: size, Groups: len(w[0]) / size}
	for _, row := range w {
		q, scales, zeros := make([]float64, len(row)), make([]float64, g.Groups), make([]float64, g.Groups)
		for k := range g.Groups {
			group := row[k*size : (k+1)*size]
			s := step(group)
			least, most := math.Inf(1), math.Inf(-1)
			for i, x := range group {
				n := math.Round(x / s)
				if math.Abs(x/s-n) > nearWhole*max(1, math.Abs(n)) {
					return nil
				}
				q[k*size+i], least, most = n, min(least, n), max(most, n)
			}
			zero := max(-least, 0)
			if most+zero > gridTop {
				return nil
			}
			for i := range group {
				q[k*size+i] += zero
			}
			scales[k], zeros[k] = s, zero
		}
		g.Q, g.Scale, g.Zero = append(g.Q, q), append(g.Scale, scales), append(g.Zero, zeros)
	}
	return g
}

// step is the smallest difference of two numbers that are not the same.
func step(group []float64) float64 {
	x := slices.Sorted(slices.Values(group))
	least, same := math.Inf(1), 1e-4*(x[len(x)-1]-x[0])
	for i := 1; i < len(x); i++ {
		if d := x[i] - x[i-1]; d > same {
			least = min(least, d)
		}
	}
	if math.IsInf(least, 1) {
		return max(math.Abs(x[0]), 1)
	}
	return least
}

// Weight is the weight with other numbers: of gives scale, zero and q of an element.
func (g *Grid) Weight(of func(row, group, input int) (scale, zero, q float64)) []float64 {
	var out []float64
	for r, row := range g.Q {
		for c := range row {
			s, z, q := of(r, c/g.Size, c)
			out = append(out, s*(q-z))
		}
	}
	return out
}
