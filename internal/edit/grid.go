package edit

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
)

// grids are weights that are quantised, or lie on the grid of a quantisation, read otherwise: other scales and zero points,
// numbers in another order.
func grids(s *site) {
	for i, v := range s.Values {
		id := program.ID(i)
		if v.Weight == "" || !isFloat(v) || len(v.Shape) != 2 || size(v.Shape) > mostGrid || s.Maker(id) >= 0 || len(s.takers(id)) == 0 {
			continue
		}
		g := s.gridOf(id)
		if g == nil {
			continue
		}
		l := &grid{site: s, id: id, g: g}
		l.all()
		if c := g.Centred(); c != nil {
			centred := &grid{site: s, id: id, g: c, centred: true}
			centred.zeros()
			centred.numbers()
		}
	}
}

// gridOf is the grid of a weight, as its file tells, or its numbers; nil for none.
func (s *site) gridOf(id program.ID) *quant.Grid {
	v := s.Values[id]
	rows, in := v.Shape[0], v.Shape[1]
	read := func(n int) []float64 { return s.floats(id)[:n*in] }
	if i := slices.IndexFunc(s.weights, func(w Weight) bool { return w.Name == v.Weight && w.Open != nil }); i >= 0 {
		if t := s.weights[i].Open(); t != nil && slices.Equal(t.Shape(), v.Shape) {
			if g := quant.PackedGrid(t); g != nil {
				return g
			}
			read = func(n int) []float64 {
				x := make([]float64, n*in)
				t.Float64s(x, 0)
				return x
			}
		}
	}
	few := byRow(read(min(rows, firstRows)), in)
	for _, find := range []func([][]float64, int) *quant.Grid{quant.FloatGridOf, quant.GridOf} { // floats of 4 bits are whole numbers, too
		for _, size := range slices.Backward(quant.GroupSizes) { // a part of a group lies on the grid, too
			if find(few, size) == nil {
				continue
			}
			if g := find(byRow(read(rows), in), size); g != nil {
				return g
			}
		}
	}
	return nil
}

// byRow cuts numbers into rows.
func byRow(x []float64, width int) (rows [][]float64) {
	for from := 0; from+width <= len(x); from += width {
		rows = append(rows, x[from:from+width])
	}
	return rows
}

// grid lists what can be wrong with a weight on one.
type grid struct {
	*site
	id      program.ID
	g       *quant.Grid
	centred bool // all zero points are in the middle
}

const quantZero, quantGroup, quantOrder, quantMissing, quantScale = "quant/zero-point", "quant/group", "quant/order", "quant/missing", "quant/scale"

// add appends an edit that reads other numbers in the place of the weight. They are made when they are needed.
func (l *grid) add(id string, rank int, what string, of func(r, k, c int) (s, z, q float64)) {
	g := l.g
	bits := fmt.Sprintf("groups of %d", g.Size)
	if g.Top > 0 {
		bits = fmt.Sprintf("%d bits, %s", int(math.Log2(g.Top+1)), bits)
	}
	e := l.instead("quant", 2+rank, text("%s: %s (%s)", l.Values[l.id].Weight, what, bits), l.takers(l.id), []program.ID{l.id}, func(w *writer, id program.ID) program.ID {
		return w.numbered(program.Value{Shape: l.Values[id].Shape, DType: tensor.F32}, func() []float64 { return g.Weight(of) })
	})
	e.ID, e.Weight = id, l.Values[l.id].Weight
}

// scaleOf and zeroOf are those of a row's band and a group.
func (l *grid) scaleOf(r, k int) float64 { return l.g.Scale[r/l.g.Band][k] }
func (l *grid) zeroOf(r, k int) float64  { return l.g.Zero[r/l.g.Band][k] }

func (l *grid) all() {
	if l.g.Top > 0 {
		l.zeros()
		l.numbers()
	}
	l.others()
	l.withinBlocks()
	l.superblocks()
	l.orders()
}

// zeros appends other zero points.
func (l *grid) zeros() {
	g := l.g
	add := func(rank int, text string, of func(z float64) float64) {
		l.add(quantZero, rank, text, func(r, k, c int) (float64, float64, float64) { return l.scaleOf(r, k), of(l.zeroOf(r, k)), g.Q[r][c] })
	}
	what := "the zero points are "
	if !g.Whole {
		what = "the lowest numbers of the groups (biases, minima) are "
	}
	add(0, what+"left out", func(float64) float64 { return 0 })
	add(1, what+"added with the other sign", func(z float64) float64 { return -z })
	if !g.Whole {
		return
	}
	add(0, what+"one too large", func(z float64) float64 { return z + 1 })
	add(0, what+"one too small", func(z float64) float64 { return z - 1 })
	if l.centred {
		return
	}
	half := (g.Top + 1) / 2
	add(0, fmt.Sprintf("%s%g for all", what, half), func(float64) float64 { return half })
	add(1, fmt.Sprintf("%s%g − z", what, g.Top), func(z float64) float64 { return g.Top - z })
	l.add(quantZero, 1, what+"not multiplied by the scale", func(r, k, c int) (float64, float64, float64) {
		s := l.scaleOf(r, k)
		if s == 0 {
			return 0, 0, 0
		}
		return s, l.zeroOf(r, k) / s, g.Q[r][c]
	})
}

// numbers appends numbers that are read with fewer bits, or another sign.
func (l *grid) numbers() {
	g := l.g
	same := func(id, text string, of func(q float64) float64) {
		l.add(id, 1, text, func(r, k, c int) (float64, float64, float64) { return l.scaleOf(r, k), l.zeroOf(r, k), of(g.Q[r][c]) })
	}
	if g.Top > 15 && g.Top < 255 {
		same(quantMissing, "the upper bits of the numbers are left out, 4 are read", func(q float64) float64 { return math.Mod(q, 16) })
	}
	if l.centred {
		half := (g.Top + 1) / 2
		same(quantZero, "negative numbers are read without their sign", func(q float64) float64 {
			if q < half {
				return q + g.Top + 1
			}
			return q
		})
	}
}

// others appends scales and zero points of other groups and rows. Where rows share them, a row is
// their band.
func (l *grid) others() {
	g := l.g
	rows, n := len(g.Scale), g.Groups
	scales := func(id string, rank int, text string, at func(r, k, c int) (int, int)) {
		l.add(id, rank, "the scales are "+text, func(r, k, c int) (float64, float64, float64) {
			a, b := at(r/g.Band, k, c)
			s, z := g.Scale[a][b], l.zeroOf(r, k)
			if !g.Whole && s != 0 {
				z *= l.scaleOf(r, k) / s
			}
			return s, z, g.Q[r][c]
		})
	}
	groups := func(rank int, text string, at func(r, k, c int) (int, int)) {
		if slices.ContainsFunc(g.Zero, func(z []float64) bool { return slices.ContainsFunc(z, func(v float64) bool { return v != 0 }) }) {
			l.add(quantGroup, rank, "scales and zero points are "+text, func(r, k, c int) (float64, float64, float64) {
				a, b := at(r/g.Band, k, c)
				return g.Scale[a][b], g.Zero[a][b], g.Q[r][c]
			})
			l.add(quantZero, rank+1, "the zero points are "+text, func(r, k, c int) (float64, float64, float64) {
				a, b := at(r/g.Band, k, c)
				z := g.Zero[a][b]
				if !g.Whole && l.scaleOf(r, k) != 0 { // what is kept is scale·zero
					z *= g.Scale[a][b] / l.scaleOf(r, k)
				}
				return l.scaleOf(r, k), z, g.Q[r][c]
			})
		}
		scales(quantGroup, rank+1, text, at)
	}
	groups(0, "read as [groups, rows]", func(r, k, _ int) (int, int) { at := k*rows + r; return at / n, at % n })
	groups(0, "written as [groups, rows]", func(r, k, _ int) (int, int) { at := r*n + k; return at % rows, at / rows })
	l.add(quantScale, 0, "scales and zero points are those of the first group of each row", func(r, _, c int) (float64, float64, float64) {
		return l.scaleOf(r, 0), l.zeroOf(r, 0), g.Q[r][c]
	})
	scales(quantScale, 1, "those of the first group of each row", func(r, _, _ int) (int, int) { return r, 0 })
	groups(1, "those of the row before", func(r, k, _ int) (int, int) { return (r + rows - 1) % rows, k })
	groups(1, "those of the next row", func(r, k, _ int) (int, int) { return (r + 1) % rows, k })
	for _, by := range slices.Compact([]int{1, n - 1}) {
		if n > 1 {
			groups(0, fmt.Sprintf("those of the group %d further on, of %d", by, n), func(r, k, _ int) (int, int) { return r, (k + by) % n })
		}
	}
	if g.Of != nil {
		groups(0, "those of consecutive groups, without g_idx", func(r, _, c int) (int, int) { return r, min(c/g.Size, n-1) })
	}
	for _, f := range []int{2, 4} {
		if n%f == 0 {
			groups(0, fmt.Sprintf("those of groups of %d, each %dth", f*g.Size, f), func(r, k, _ int) (int, int) { return r, k / f * f })
			groups(1, fmt.Sprintf("those of groups of %d, the first of each row", f*g.Size), func(r, k, _ int) (int, int) { return r, k / f })
		}
		if small := g.Size / f; g.Size%f == 0 && n > 1 && g.Of == nil {
			groups(0, fmt.Sprintf("those of groups of %d, in turn", small), func(r, _, c int) (int, int) { return r, c / small % n })
		}
	}
	factor := func(text string, of func(s float64) float64) {
		l.add(quantScale, 1, text, func(r, k, c int) (float64, float64, float64) { return of(l.scaleOf(r, k)), l.zeroOf(r, k), g.Q[r][c] })
	}
	factor("the scales are left out", func(float64) float64 { return 1 })
	factor("the numbers are divided by the scales", func(s float64) float64 {
		if s == 0 {
			return 0
		}
		return 1 / s
	})
	factor("all have the first scale", func(float64) float64 { return g.Scale[0][0] })
}

// withinBlocks appends scales of other groups of ggml's blocks of 256.
func (l *grid) withinBlocks() {
	g := l.g
	const size = 256
	each := size / g.Size
	if g.Size > 32 || g.Band != 1 || g.Groups%each != 0 || g.Groups == each {
		return // in a row of one block these are the row's
	}
	for _, by := range []int{1, each - 1} {
		l.add(quantGroup, 1, fmt.Sprintf("the scales are those of the group %d further on in the block of %d", by, size), func(r, k, c int) (float64, float64, float64) {
			return g.Scale[r][k/each*each+(k+by)%each], l.zeroOf(r, k), g.Q[r][c]
		})
	}
}

// superblocks appends faults of K-quants, whose scales and minima are whole numbers of 6 bits times
// those of a block of 256.
func (l *grid) superblocks() {
	g := l.g
	const size, top = 256, 63
	each := size / g.Size
	if g.Size != 32 || g.Band != 1 || g.Groups%each != 0 || g.Whole || g.Top != 15 {
		return
	}
	sixBits := func(of func(r, k int) float64) (d []float64, n [][]float64) { // d by block
		for r := range g.Scale {
			row := make([]float64, g.Groups)
			for from := 0; from < g.Groups; from += each {
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
	d, s := sixBits(l.scaleOf)
	e, m := sixBits(func(r, k int) float64 { return l.scaleOf(r, k) * l.zeroOf(r, k) })
	blocks := g.Groups / each
	low := func(v float64, k int) float64 {
		if k%each < 4 {
			return v
		}
		return math.Mod(v, 16)
	}
	add := func(id, text string, of func(r, k, b int) (scale, least float64)) {
		l.add(id, 1, text, func(r, k, c int) (float64, float64, float64) {
			scale, least := of(r, k, r*blocks+k/each)
			if scale == 0 {
				return 1, least, 0
			}
			return scale, least / scale, g.Q[r][c]
		})
	}
	add(quantScale, "the upper bits of the scales of groups 4 to 7 of a block are left out", func(r, k, b int) (float64, float64) {
		return d[b] * low(s[r][k], k), e[b] * m[r][k]
	})
	add(quantScale, "the upper bits of scales and minima of groups 4 to 7 of a block are left out", func(r, k, b int) (float64, float64) {
		return d[b] * low(s[r][k], k), e[b] * low(m[r][k], k)
	})
	add(quantScale, "the scales d and dmin of a block are exchanged", func(r, k, b int) (float64, float64) {
		return e[b] * s[r][k], d[b] * m[r][k]
	})
	for _, by := range []int{1, each - 1} {
		next := func(k int) int { return k/each*each + (k+by)%each }
		add(quantGroup, fmt.Sprintf("the scales are those of the group %d further on in the block of %d", by, size), func(r, k, b int) (float64, float64) {
			return d[b] * s[r][next(k)], e[b] * m[r][k]
		})
		add(quantGroup, fmt.Sprintf("scales and minima are those of the group %d further on in the block of %d", by, size), func(r, k, b int) (float64, float64) {
			return d[b] * s[r][next(k)], e[b] * m[r][next(k)]
		})
	}
	for _, by := range []int{1, blocks - 1} {
		if blocks > 1 {
			next := func(r, k int) int { return r*blocks + (k/each+by)%blocks }
			add(quantGroup, fmt.Sprintf("the scale d is that of the block %d further on, of %d", by, blocks), func(r, k, b int) (float64, float64) {
				return d[next(r, k)] * s[r][k], e[b] * m[r][k]
			})
		}
	}
}

// orders appends numbers that are unpacked in another order.
func (l *grid) orders() {
	g := l.g
	rows, in := len(g.Q), len(g.Q[0])
	zeros := g.Whole && g.Band == 1
	for _, m := range nibbleOrders {
		if rows%len(m) == 0 && len(m) <= 8 {
			at := func(r int) int { return r - r%len(m) + m[r%len(m)] }
			l.add(quantOrder, 0, fmt.Sprintf("the numbers are unpacked in the order %v along the outputs", m), func(r, k, c int) (float64, float64, float64) {
				return l.scaleOf(r, k), l.zeroOf(r, k), g.Q[at(r)][c]
			})
			if zeros {
				l.add(quantOrder, 0, fmt.Sprintf("numbers and zero points are unpacked in the order %v along the outputs", m), func(r, k, c int) (float64, float64, float64) {
					return l.scaleOf(r, k), l.zeroOf(at(r), k), g.Q[at(r)][c]
				})
				l.add(quantOrder, 1, fmt.Sprintf("the zero points are unpacked in the order %v along the outputs", m), func(r, k, c int) (float64, float64, float64) {
					return l.scaleOf(r, k), l.zeroOf(at(r), k), g.Q[r][c]
				})
			}
		}
		if in%len(m) == 0 {
			name := fmt.Sprint(m)
			if len(m) > 8 {
				name = halvesName[m[1]]
			}
			l.add(quantOrder, 0, fmt.Sprintf("the numbers are unpacked in the order %s along the inputs", name), func(r, k, c int) (float64, float64, float64) {
				return l.scaleOf(r, k), l.zeroOf(r, k), g.Q[r][c-c%len(m)+m[c%len(m)]]
			})
		}
	}
	if g.Of != nil {
		l.add(quantOrder, 0, "the inputs are in the order of their groups", func(r, k, c int) (float64, float64, float64) {
			from := l.ordered()[c]
			return l.scaleOf(r, g.Group(from)), l.zeroOf(r, g.Group(from)), g.Q[r][from]
		})
	}
}

// ordered lists the inputs by their groups.
func (l *grid) ordered() []int {
	at := make([]int, len(l.g.Of))
	for c := range at {
		at[c] = c
	}
	slices.SortStableFunc(at, func(a, b int) int { return l.g.Of[a] - l.g.Of[b] })
	return at
}

// halves are the orders of numbers of a block of 2n whose low and high halves of bytes are the first
// and the last n: read as neighbours, written as neighbours, and exchanged.
func halves(n int) (out [][]int) {
	read, written, exchanged := make([]int, 2*n), make([]int, 2*n), make([]int, 2*n)
	for i := range 2 * n {
		read[i] = i/2 + i%2*n
		written[i] = i%n*2 + i/n
		exchanged[i] = (i + n) % (2 * n)
	}
	return [][]int{read, written, exchanged}
}

// halvesName is how the orders of halves are called, by their second number.
var halvesName = map[int]string{
	16: "of neighbours (blocks of 32)", 32: "of neighbours (blocks of 64)", 2: "of halves", 17: "of exchanged halves (blocks of 32)",
	33: "of exchanged halves (blocks of 64)",
}

// nibbleOrders are wrong orders of numbers that were packed into bytes or words: the halves of a byte
// exchanged, AWQ's order and back, the words from the last on; of ggml's blocks, which keep two
// numbers of a byte half a block apart.
var nibbleOrders = slices.Concat([][]int{{1, 0}, {0, 4, 1, 5, 2, 6, 3, 7}, {0, 2, 4, 6, 1, 3, 5, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {1, 0, 3, 2, 5, 4, 7, 6}},
	halves(16), halves(32))
