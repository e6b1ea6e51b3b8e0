package fault

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// Grid is a linear layer whose weight, of 4 bits with zero points, is dequantised otherwise.
func Grid(o *rebuild.Linear) (out List) {
	if o.Conv || o.Key == "" || o.W.Len() > changedWeight || !o.W.DType().IsFloat() {
		return nil
	}
	w := o.W.Rows()
	for _, size := range slices.Backward(op.GroupSizes) { // a part of a group lies on the grid, too
		if g := gridOf(w, size); g != nil {
			return grids(o, g)
		}
	}
	return nil
}

// gridOf looks at some rows first.
func gridOf(w [][]float64, size int) *op.Grid {
	if op.GridOf(w[:min(len(w), firstRows)], size) == nil {
		return nil
	}
	return op.GridOf(w, size)
}

func grids(o *rebuild.Linear, g *op.Grid) (out List) {
	in, rows, n := o.In.Width, o.Out.Width, g.Groups
	add := func(id string, rank int, text string, of func(r, k, c int) (s, z, q float64)) {
		out.add(made(o, func() *op.Matrix { return op.MatrixOf(g.Weight(of), rows, in) }), rank, "%s (4 bits, groups of %d)", text, g.Size).ID = id
	}
	const zero, group, order = "quant/zero-point", "quant/group", "quant/order"
	s, z, q := g.Scale, g.Zero, g.Q
	zeros := func(rank int, text string, of func(z float64) float64) {
		add(zero, rank, text, func(r, k, c int) (float64, float64, float64) { return s[r][k], of(z[r][k]), q[r][c] })
	}
	zeros(0, "the zero points are one too large", func(z float64) float64 { return z + 1 })
	zeros(0, "the zero points are one too small", func(z float64) float64 { return z - 1 })
	zeros(0, "the zero points are left out", func(float64) float64 { return 0 })
	zeros(0, "the zero points are 8 for all", func(float64) float64 { return 8 })
	zeros(1, "the zero points are added and not subtracted", func(z float64) float64 { return -z })
	zeros(1, "the zero points are 15 − z", func(z float64) float64 { return 15 - z })
	add(zero, 1, "the zero points are not multiplied by the scale", func(r, k, c int) (float64, float64, float64) {
		if s[r][k] == 0 {
			return 0, 0, 0
		}
		return s[r][k], z[r][k] / s[r][k], q[r][c]
	})
	groups := func(rank int, text string, at func(r, k int) (int, int)) {
		add(group, rank, "scales and zero points are "+text, func(r, k, c int) (float64, float64, float64) {
			a, b := at(r, k)
			return s[a][b], z[a][b], q[r][c]
		})
		add(group, rank+1, "the scales are "+text, func(r, k, c int) (float64, float64, float64) {
			a, b := at(r, k)
			return s[a][b], z[r][k], q[r][c]
		})
		add(zero, rank+1, "the zero points are "+text, func(r, k, c int) (float64, float64, float64) {
			a, b := at(r, k)
			return s[r][k], z[a][b], q[r][c]
		})
	}
	groups(0, "read as [groups, rows]", func(r, k int) (int, int) { at := k*rows + r; return at / n, at % n })
	groups(0, "written as [groups, rows]", func(r, k int) (int, int) { at := r*n + k; return at % rows, at / rows })
	groups(0, "those of the first group of each row", func(r, _ int) (int, int) { return r, 0 })
	groups(1, "those of the row before", func(r, k int) (int, int) { return (r + rows - 1) % rows, k })
	groups(1, "those of the next row", func(r, k int) (int, int) { return (r + 1) % rows, k })
	for _, by := range []int{1, n - 1} {
		if n > 1 {
			groups(0, fmt.Sprintf("those of the group %d further on, of %d", by, n), func(r, k int) (int, int) { return r, (k + by) % n })
		}
	}
	for _, m := range nibbleOrders {
		along := func(axis string, of func(r, c int) (int, int)) {
			add(order, 0, fmt.Sprintf("the numbers are unpacked in the order %v along the %s", m, axis), func(r, k, c int) (float64, float64, float64) {
				a, b := of(r, c)
				return s[r][k], z[r][k], q[a][b]
			})
		}
		if rows%len(m) == 0 {
			along("outputs", func(r, c int) (int, int) { return r - r%len(m) + m[r%len(m)], c })
		}
		if in%len(m) == 0 {
			along("inputs", func(r, c int) (int, int) { return r, c - c%len(m) + m[c%len(m)] })
		}
	}
	return out
}

// nibbleOrders are wrong orders of numbers that were packed into bytes or words: the halves of a byte
// exchanged, AWQ's order and back, the words from the last on.
var nibbleOrders = [][]int{{1, 0}, {0, 4, 1, 5, 2, 6, 3, 7}, {0, 2, 4, 6, 1, 3, 5, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {1, 0, 3, 2, 5, 4, 7, 6}}
