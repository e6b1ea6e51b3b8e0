package edit

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// Grid is a weight that was quantised: w = scale·(q − zero), with a scale and a zero point for each
// group of inputs. q are whole numbers from 0 to Top (AWQ, arXiv 2306.00978; GPTQ, 2210.17323), or,
// where Top is 0, floats of few bits with zero points 0 (MXFP4, FP8).
type Grid struct {
	Size, Groups int         // inputs of a group, groups of a row
	Band         int         // rows that share their scales: 1, or more in blocks of both axes
	Top          float64     // the largest whole number: 15 of 4 bits
	Q            [][]float64 // by row and input
	Scale, Zero  [][]float64 // by band of rows and group
	Of           []int       // the group of each input; nil: consecutive ones
	Whole        bool        // zero points are whole numbers
}

// Group is the group of an input.
func (g *Grid) Group(input int) int {
	if g.Of != nil {
		return g.Of[input]
	}
	return input / g.Size
}

// Weight is the weight with other numbers: of gives scale, zero and q of an element.
func (g *Grid) Weight(of func(row, group, input int) (scale, zero, q float64)) []float64 {
	var out []float64
	for r, row := range g.Q {
		for c := range row {
			s, z, q := of(r, g.Group(c), c)
			out = append(out, s*(q-z))
		}
	}
	return out
}

// Centred is the grid with one zero point for all, in the middle: as formats without zero points
// have it. It is nil if some numbers would be negative, or are not whole.
func (g *Grid) Centred() *Grid {
	if !g.Whole || g.Top < 3 {
		return nil
	}
	half := float64((g.Top + 1) / 2)
	c := *g
	c.Q, c.Zero = nil, nil
	for r, row := range g.Q {
		q := make([]float64, len(row))
		for i, n := range row {
			q[i] = n - g.Zero[r/g.Band][g.Group(i)] + half
			if q[i] < 0 || q[i] > g.Top {
				return nil
			}
		}
		c.Q = append(c.Q, q)
	}
	for _, zeros := range g.Zero {
		c.Zero = append(c.Zero, slices.Repeat([]float64{half}, len(zeros)))
	}
	return &c
}

// GridOf finds the grid on which a weight lies, in groups of size inputs; nil for none. The smallest
// number of a group that has negative ones is taken to be q = 0. If all numbers are multiples of the
// scale, zero points are whole.
func GridOf(w [][]float64, size int) *Grid {
	if g := gridBy(w, size, multiples); g != nil {
		return g
	}
	return gridBy(w, size, fromLowest)
}

// FloatGridOf is GridOf for floats of 4 bits times powers of 2.
func FloatGridOf(w [][]float64, size int) *Grid { return gridBy(w, size, fp4) }

func gridBy(w [][]float64, size int, find func(group []float64) (scale, zero float64, q []float64)) *Grid {
	if len(w) == 0 || len(w[0]) == 0 || len(w[0])%size != 0 {
		return nil
	}
	g := &Grid{Size: size, Groups: len(w[0]) / size, Band: 1}
	for _, row := range w {
		var q, scales, zeros []float64
		for group := range slices.Chunk(row, size) {
			s, z, n := find(group)
			if n == nil {
				return nil
			}
			q, scales, zeros = append(q, n...), append(scales, s), append(zeros, z)
		}
		g.Q, g.Scale, g.Zero = append(g.Q, q), append(g.Scale, scales), append(g.Zero, zeros)
	}
	all := slices.Concat(g.Q...)
	if slices.Min(all) < 0 {
		return g // floats
	}
	for bits := 8; bits >= 2; bits-- {
		if top := float64(int(1)<<bits - 1); slices.Max(all) <= top {
			g.Top = top
		}
	}
	g.Whole = !slices.ContainsFunc(slices.Concat(all, slices.Concat(g.Zero...)), func(x float64) bool { return x != math.Trunc(x) })
	return g
}

// GroupSizes are the sizes of groups of quantised weights in use, in inputs.
var GroupSizes = []int{8, 16, 32, 64, 128, 256}

// multiples takes the numbers of a group as multiples of a scale.
func multiples(group []float64) (scale, zero float64, q []float64) {
	most := largest(group)
	if most == 0 {
		return 1, 0, make([]float64, len(group))
	}
	var steps []float64
	tried, top := []float64{3, 4, 7, 8, 15, 16, 31, 32}, float64(gridTop)
	if len(group) >= 32 { // of fewer, some are near whole numbers by chance
		tried, top = append(tried, 127, 128), 255
	}
	for _, n := range tried {
		steps = append(steps, most/n)
	}
	least := step(group)
	for k := 1.0; k <= mostSteps; k++ {
		steps = append(steps, least/k)
	}
	slices.SortFunc(steps, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, s := range steps {
		if q := wholeCodes(group, 0, s); q != nil {
			if zero = max(-slices.Min(q), 0); slices.Max(q)+zero > top {
				return 0, 0, nil
			}
			for i := range q {
				q[i] += zero
			}
			return s, zero, q
		}
	}
	return 0, 0, nil
}

// fromLowest takes them as multiples of a scale from the smallest on.
func fromLowest(group []float64) (scale, zero float64, q []float64) {
	low, high := slices.Min(group), slices.Max(group)
	if low == high {
		if low == 0 {
			return 1, 0, make([]float64, len(group))
		}
		return math.Abs(low), -low / math.Abs(low), make([]float64, len(group))
	}
	least := step(group)
	for _, s := range []float64{(high - low) / 3, (high - low) / 7, (high - low) / 15, least, least / 2, (high - low) / 31, (high - low) / 63} {
		if q := wholeCodes(group, low, s); q != nil && slices.Max(q) <= gridTop {
			return s, -low / s, q
		}
	}
	return 0, 0, nil
}

// wholeCodes are the numbers of a group in steps from a point; nil if one is not whole.
func wholeCodes(group []float64, from, s float64) []float64 {
	q := make([]float64, len(group))
	for i, x := range group {
		n := (x - from) / s
		q[i] = math.Round(n)
		if math.Abs(n-q[i]) > nearWhole*max(1, math.Abs(n)/16) {
			return nil
		}
	}
	return q
}

// fp4Sizes are the sizes of floats of 4 bits.
var fp4Sizes = []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// fp4 takes them as floats of 4 bits times a power of 2.
func fp4(group []float64) (scale, zero float64, q []float64) {
	most := largest(group)
	if most == 0 {
		return 1, 0, make([]float64, len(group))
	}
	_, e := math.Frexp(most)
	for _, top := range []int{3, 2, 1} { // the largest is 4 or 6; 2 or 3; 1 or 1.5
		s := math.Ldexp(1, e-top)
		q = q[:0]
		for _, x := range group {
			if !slices.Contains(fp4Sizes, math.Abs(x)/s) {
				break
			}
			q = append(q, x/s)
		}
		if len(q) == len(group) {
			return s, 0, q
		}
	}
	return 0, 0, nil
}

// PackedGrid is the grid of a weight that is quantised in its file; nil where that does not tell it.
func PackedGrid(t *tensor.Tensor) *Grid {
	if len(t.Shape()) != 2 || t.Len() == 0 {
		return nil
	}
	rows, in := t.Shape()[0], t.Shape()[1]
	low, high := make([]float32, in), make([]float32, in)
	packing := t.Grid(low, high, 0)
	if packing == nil || len(packing.Values) < 2 {
		return nil
	}
	first, last := float64(packing.Values[0]), float64(packing.Values[len(packing.Values)-1])
	g := &Grid{Band: 1}
	if first == 0 && last == float64(len(packing.Values)-1) {
		g.Top = last
	}
	scales, zeros := make([][]float64, rows), make([][]float64, rows) // of each number
	for r := range rows {
		t.Grid(low, high, r*in)
		q := make([]float64, in)
		t.Float64s(q, r*in)
		scales[r], zeros[r] = make([]float64, in), make([]float64, in)
		for c := range in {
			l, h := float64(low[c]), float64(high[c])
			s := (h - l) / (last - first)
			if s == 0 || math.IsNaN(s) || math.IsInf(s, 0) {
				q[c] = max(first, 0)
				continue
			}
			z := nearly(first - l/s)
			scales[r][c], zeros[r][c] = s, z
			if q[c] = q[c]/s + z; g.Top > 0 {
				q[c] = nearly(q[c])
			}
		}
		g.Q = append(g.Q, q)
	}
	g.Size = runs(scales, zeros)
	g.Groups = in / g.Size
	if packing.Groups != nil {
		g.Of, g.Groups = make([]int, in), int(slices.Max(packing.Groups))+1
		for c, k := range packing.Groups {
			g.Of[c] = int(k)
		}
		g.Size = max(in/g.Groups, 1)
	}
	for r := range rows {
		s, z := make([]float64, g.Groups), make([]float64, g.Groups)
		for c := range in {
			s[g.Group(c)], z[g.Group(c)] = scales[r][c], zeros[r][c]
		}
		g.Scale, g.Zero = append(g.Scale, s), append(g.Zero, z)
	}
	g.Whole = g.Top > 0 && !slices.ContainsFunc(slices.Concat(g.Zero...), func(z float64) bool { return z != math.Trunc(z) })
	g.joinBands()
	return g
}

// nearly is the whole number that another one nearly is, or that itself.
func nearly(x float64) float64 {
	if n := math.Round(x); math.Abs(x-n) < nearWhole {
		return n
	}
	return x
}

// joinBands keeps the scales of each band of rows once, where its rows share them.
func (g *Grid) joinBands() {
	for _, band := range []int{128, 64, 32} {
		shared := len(g.Q) > band
		for r := range g.Q {
			shared = shared && slices.Equal(g.Scale[r], g.Scale[r/band*band])
		}
		if !shared {
			continue
		}
		bands := slices.Collect(slices.Chunk(g.Scale, band))
		zeros := slices.Collect(slices.Chunk(g.Zero, band))
		g.Band, g.Scale, g.Zero = band, nil, nil
		for k := range bands {
			g.Scale, g.Zero = append(g.Scale, bands[k][0]), append(g.Zero, zeros[k][0])
		}
		return
	}
}

// runs is the largest number of neighbours that share scale and zero point in all rows.
func runs(scales, zeros [][]float64) int {
	in := len(scales[0])
	size := in
	for r := range scales {
		from := 0
		for c := 1; c < in; c++ {
			if scales[r][c] != scales[r][from] || zeros[r][c] != zeros[r][from] {
				size = gcd(size, c)
				from = c
			}
		}
	}
	return size
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
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

// largest is the size of the largest of some numbers.
func largest(x []float64) float64 { return max(slices.Max(x), -slices.Min(x)) }
