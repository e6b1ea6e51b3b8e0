package edit

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// grids are weights that are quantised, or lie on the grid of a quantisation, read otherwise: other scales and zero points,
// numbers in another order.
func grids(s *site) {
	for _, id := range s.taken() {
		v := s.Values[id]
		if !isFloat(v) || len(v.Shape) != 2 || size(v.Shape) > mostGrid {
			continue
		}
		g := s.gridOf(id)
		if g == nil {
			continue
		}
		l := &grid{site: s, id: id, Grid: g}
		if g.Top > 0 {
			l.zeros()
			l.numbers()
		}
		l.elsewhere()
		l.superblocks()
		l.orders()
		if c := g.Centred(); c != nil {
			l = &grid{site: s, id: id, Grid: c, centred: true}
			l.zeros()
			l.numbers()
		}
	}
}

// gridOf is the grid of a weight, as its file tells, or its numbers; nil for none.
func (s *site) gridOf(id program.ID) *Grid {
	v := s.Values[id]
	rows, in := v.Shape[0], v.Shape[1]
	read := func(n int) []float64 { return s.floats(id)[:n*in] }
	if i := slices.IndexFunc(s.weights, func(w Weight) bool { return w.Name == v.Weight && w.Open != nil }); i >= 0 {
		if t := s.weights[i].Open(); t != nil && slices.Equal(t.Shape(), v.Shape) {
			if g := PackedGrid(t); g != nil {
				return g
			}
			read = func(n int) []float64 {
				x := make([]float64, n*in)
				t.Float64s(x, 0)
				return x
			}
		}
	}
	few := slices.Collect(slices.Chunk(read(min(rows, firstRows)), in))
	for _, find := range []func([][]float64, int) *Grid{FloatGridOf, GridOf} { // floats of 4 bits are whole numbers, too
		for _, size := range slices.Backward(GroupSizes) { // a part of a group lies on the grid, too
			if find(few, size) == nil {
				continue
			}
			if g := find(slices.Collect(slices.Chunk(read(rows), in)), size); g != nil {
				return g
			}
		}
	}
	return nil
}

// grid lists what can be wrong with a weight on one.
type grid struct {
	*site
	*Grid
	id      program.ID
	centred bool // all zero points are in the middle
}

// cell is one number of a weight, q·s − z·s, with the row, the group and the input to which it belongs.
type cell struct {
	r, k, c int
	s, z, q float64
}

const quantZero, quantGroup, quantOrder, quantMissing, quantScale = "quant/zero-point", "quant/group", "quant/order", "quant/missing", "quant/scale"

// add appends an edit that reads other numbers in the place of the weight. They are made when they are needed.
func (l *grid) add(id string, rank int, what string, change func(x *cell)) {
	bits := fmt.Sprintf("groups of %d", l.Size)
	if l.Top > 0 {
		bits = fmt.Sprintf("%d bits, %s", int(math.Log2(l.Top+1)), bits)
	}
	e := l.instead("quant", 2+rank, text("%s: %s (%s)", l.Values[l.id].Weight, what, bits), l.takers(l.id), []program.ID{l.id}, func(w *writer, id program.ID) program.ID {
		return w.numbers(tensor.F32, l.shape(id), func() []float64 {
			return l.Grid.Weight(func(r, k, c int) (s, z, q float64) {
				x := cell{r, k, c, l.Scale[r/l.Band][k], l.Zero[r/l.Band][k], l.Q[r][c]}
				change(&x)
				return x.s, x.z, x.q
			})
		})
	})
	e.ID, e.Weight = id, l.Values[l.id].Weight
}

// zeros appends other zero points.
func (l *grid) zeros() {
	what := "the zero points are "
	if !l.Whole {
		what = "the lowest numbers of the groups (biases, minima) are "
	}
	add := func(rank int, text string, change func(x *cell)) { l.add(quantZero, rank, what+text, change) }
	add(0, "left out", func(x *cell) { x.z = 0 })
	add(1, "added with the other sign", func(x *cell) { x.z = -x.z })
	if !l.Whole {
		return
	}
	add(0, "one too large", func(x *cell) { x.z++ })
	add(0, "one too small", func(x *cell) { x.z-- })
	if l.centred {
		return
	}
	half := (l.Top + 1) / 2
	add(0, fmt.Sprintf("%g for all", half), func(x *cell) { x.z = half })
	add(1, fmt.Sprintf("%g − z", l.Top), func(x *cell) { x.z = l.Top - x.z })
	add(1, "not multiplied by the scale", func(x *cell) {
		if x.z /= x.s; x.s == 0 {
			x.z, x.q = 0, 0
		}
	})
}

// numbers appends numbers that are read with fewer bits, or another sign.
func (l *grid) numbers() {
	if l.Top > 15 && l.Top < 255 {
		l.add(quantMissing, 1, "the upper bits of the numbers are left out, 4 are read", func(x *cell) { x.q = math.Mod(x.q, 16) })
	}
	if l.centred {
		l.add(quantZero, 1, "negative numbers are read without their sign", func(x *cell) {
			if x.q < (l.Top+1)/2 {
				x.q += l.Top + 1
			}
		})
	}
}

// place says in which row and group the scale and the zero point of a number stand. Where rows share them, a row is their
// band.
type place func(r, k, c int) (row, group int)

// scales appends scales and zero points of other groups and rows, these together and each by itself.
func (l *grid) scales(rank int, text string, at place) {
	from := func(x *cell) (s, z float64) {
		r, k := at(x.r/l.Band, x.k, x.c)
		return l.Scale[r][k], l.Zero[r][k]
	}
	if slices.ContainsFunc(l.Zero, func(z []float64) bool { return slices.ContainsFunc(z, func(v float64) bool { return v != 0 }) }) {
		l.add(quantGroup, rank, "scales and zero points are "+text, func(x *cell) { x.s, x.z = from(x) })
		l.add(quantZero, rank+1, "the zero points are "+text, func(x *cell) {
			s, z := from(x)
			if x.z = z; !l.Whole && x.s != 0 { // what is kept is scale·zero
				x.z *= s / x.s
			}
		})
	}
	l.scale(quantGroup, rank+1, "the scales are "+text, func(x *cell) float64 { s, _ := from(x); return s })
}

// scale appends other scales alone.
func (l *grid) scale(id string, rank int, text string, of func(x *cell) float64) {
	l.add(id, rank, text, func(x *cell) {
		s := of(x)
		if !l.Whole && s != 0 {
			x.z *= x.s / s
		}
		x.s = s
	})
}

// elsewhere appends scales and zero points that stand elsewhere, or are none.
func (l *grid) elsewhere() {
	rows, n := len(l.Scale), l.Groups
	first := "those of the first group of each row"
	l.scales(0, "read as [groups, rows]", func(r, k, _ int) (int, int) { at := k*rows + r; return at / n, at % n })
	l.scales(0, "written as [groups, rows]", func(r, k, _ int) (int, int) { at := r*n + k; return at % rows, at / rows })
	l.add(quantScale, 0, "scales and zero points are "+first, func(x *cell) { x.s, x.z = l.Scale[x.r/l.Band][0], l.Zero[x.r/l.Band][0] })
	l.scale(quantScale, 1, "the scales are "+first, func(x *cell) float64 { return l.Scale[x.r/l.Band][0] })
	l.scales(1, "those of the row before", func(r, k, _ int) (int, int) { return (r + rows - 1) % rows, k })
	l.scales(1, "those of the next row", func(r, k, _ int) (int, int) { return (r + 1) % rows, k })
	for _, by := range slices.Compact([]int{1, n - 1}) {
		if n > 1 {
			l.scales(0, fmt.Sprintf("those of the group %d further on, of %d", by, n), func(r, k, _ int) (int, int) { return r, (k + by) % n })
		}
	}
	if l.Of != nil {
		l.scales(0, "those of consecutive groups, without g_idx", func(r, _, c int) (int, int) { return r, min(c/l.Size, n-1) })
	}
	for _, f := range []int{2, 4} {
		if n%f == 0 {
			l.scales(0, fmt.Sprintf("those of groups of %d, each %dth", f*l.Size, f), func(r, k, _ int) (int, int) { return r, k / f * f })
			l.scales(1, fmt.Sprintf("those of groups of %d, the first of each row", f*l.Size), func(r, k, _ int) (int, int) { return r, k / f })
		}
		if small := l.Size / f; l.Size%f == 0 && n > 1 && l.Of == nil {
			l.scales(0, fmt.Sprintf("those of groups of %d, in turn", small), func(r, _, c int) (int, int) { return r, c / small % n })
		}
	}
	l.add(quantScale, 1, "the scales are left out", func(x *cell) { x.s = 1 })
	l.add(quantScale, 1, "the numbers are divided by the scales", func(x *cell) {
		if x.s != 0 {
			x.s = 1 / x.s
		}
	})
	l.add(quantScale, 1, "all have the first scale", func(x *cell) { x.s = l.Scale[0][0] })
}

// superblocks appends scales of other groups of ggml's blocks of 256, and faults of K-quants, whose scales and minima are
// whole numbers of 6 bits times those of a block.
func (l *grid) superblocks() {
	const size, top = 256, 63
	each := size / l.Size
	if l.Size > 32 || l.Band != 1 || l.Groups%each != 0 {
		return
	}
	next := func(by int) func(k int) int { return func(k int) int { return k/each*each + (k+by)%each } }
	further := func(by int) string {
		return fmt.Sprintf("those of the group %d further on in the block of %d", by, size)
	}
	for _, by := range []int{1, each - 1} {
		if l.Groups > each { // in a row of one block these are the row's
			l.add(quantGroup, 1, "the scales are "+further(by), func(x *cell) { x.s = l.Scale[x.r][next(by)(x.k)] })
		}
	}
	if l.Size != 32 || l.Whole || l.Top != 15 {
		return
	}
	sixBits := func(of func(r, k int) float64) (d []float64, n [][]float64) { // d by block
		for r := range l.Scale {
			row := make([]float64, l.Groups)
			for from := 0; from < l.Groups; from += each {
				most := 0.0
				for k := from; k < from+each; k++ {
					most = max(most, math.Abs(of(r, k)))
				}
				for k := from; k < from+each && most > 0; k++ {
					row[k] = math.Round(of(r, k) * top / most)
				}
				d = append(d, most/top)
			}
			n = append(n, row)
		}
		return d, n
	}
	d, s := sixBits(func(r, k int) float64 { return l.Scale[r][k] })
	e, m := sixBits(func(r, k int) float64 { return l.Scale[r][k] * l.Zero[r][k] })
	add := func(id, text string, of func(r, k, b int) (scale, least float64)) {
		l.add(id, 1, text, func(x *cell) {
			scale, least := of(x.r, x.k, (x.r*l.Groups+x.k)/each)
			if x.s, x.z = scale, least/scale; scale == 0 {
				x.s, x.z, x.q = 1, least, 0
			}
		})
	}
	low := func(v float64, k int) float64 {
		if k%each < 4 {
			return v
		}
		return math.Mod(v, 16)
	}
	add(quantScale, "the upper bits of the scales of groups 4 to 7 of a block are left out", func(r, k, b int) (float64, float64) { return d[b] * low(s[r][k], k), e[b] * m[r][k] })
	add(quantScale, "the upper bits of scales and minima of groups 4 to 7 of a block are left out",
		func(r, k, b int) (float64, float64) { return d[b] * low(s[r][k], k), e[b] * low(m[r][k], k) })
	add(quantScale, "the scales d and dmin of a block are exchanged", func(r, k, b int) (float64, float64) { return e[b] * s[r][k], d[b] * m[r][k] })
	for _, by := range []int{1, each - 1} {
		next := next(by)
		add(quantGroup, "the scales are "+further(by), func(r, k, b int) (float64, float64) { return d[b] * s[r][next(k)], e[b] * m[r][k] })
		add(quantGroup, "scales and minima are "+further(by), func(r, k, b int) (float64, float64) { return d[b] * s[r][next(k)], e[b] * m[r][next(k)] })
	}
	blocks := l.Groups / each
	for _, by := range []int{1, blocks - 1} {
		if blocks > 1 {
			add(quantGroup, fmt.Sprintf("the scale d is that of the block %d further on, of %d", by, blocks), func(r, k, b int) (float64, float64) {
				return d[r*blocks+(k/each+by)%blocks] * s[r][k], e[b] * m[r][k]
			})
		}
	}
}

// orders appends numbers that are unpacked in another order.
func (l *grid) orders() {
	rows, in := len(l.Q), len(l.Q[0])
	for _, o := range packings {
		m := o.order
		if n := len(m); rows%n == 0 && n <= 8 {
			at := func(r int) int { return r - r%n + m[r%n] }
			add := func(rank int, what string, change func(x *cell)) {
				l.add(quantOrder, rank, fmt.Sprintf("%s unpacked in the order %v along the outputs", what, m), change)
			}
			add(0, "the numbers are", func(x *cell) { x.q = l.Q[at(x.r)][x.c] })
			if l.Whole && l.Band == 1 {
				add(0, "numbers and zero points are", func(x *cell) { x.z, x.q = l.Zero[at(x.r)][x.k], l.Q[at(x.r)][x.c] })
				add(1, "the zero points are", func(x *cell) { x.z = l.Zero[at(x.r)][x.k] })
			}
		}
		if n := len(m); in%n == 0 {
			l.add(quantOrder, 0, fmt.Sprintf("the numbers are unpacked in the order %s along the inputs", o.name), func(x *cell) { x.q = l.Q[x.r][x.c-x.c%n+m[x.c%n]] })
		}
	}
	if l.Of != nil {
		order := slices.SortedStableFunc(slices.Values(upTo(in)), func(a, b int) int { return l.Of[a] - l.Of[b] })
		l.add(quantOrder, 0, "the inputs are in the order of their groups", func(x *cell) {
			from := order[x.c]
			k := l.Group(from)
			x.s, x.z, x.q = l.Scale[x.r/l.Band][k], l.Zero[x.r/l.Band][k], l.Q[x.r][from]
		})
	}
}

// packing is a wrong order of numbers that were packed into bytes or words.
type packing struct {
	name  string
	order []int
}

// packings are those: the halves of a byte exchanged, AWQ's order and back, the words from the last on; of ggml's blocks,
// which keep two numbers of a byte half a block apart, these read as neighbours, written as neighbours, and exchanged.
var packings = func() (out []packing) {
	for _, m := range [][]int{{1, 0}, {0, 4, 1, 5, 2, 6, 3, 7}, {0, 2, 4, 6, 1, 3, 5, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {1, 0, 3, 2, 5, 4, 7, 6}} {
		out = append(out, packing{fmt.Sprint(m), m})
	}
	for _, n := range []int{16, 32} {
		read, written, exchanged := make([]int, 2*n), make([]int, 2*n), make([]int, 2*n)
		for i := range 2 * n {
			read[i], written[i], exchanged[i] = i/2+i%2*n, i%n*2+i/n, (i+n)%(2*n)
		}
		blocks := fmt.Sprintf("(blocks of %d)", 2*n)
		out = append(out, packing{"of neighbours " + blocks, read}, packing{"of halves", written}, packing{"of exchanged halves " + blocks, exchanged})
	}
	return out
}()
