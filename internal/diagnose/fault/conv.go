package fault

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// Patches is the tokens of an image with other positions, or in another order.
func Patches(o *rebuild.Patches) (out List) {
	same := func(at int) int { return at }
	front, n := o.Front(), o.Tokens-o.Front()
	add := func(id, text string, factor float64, position, patch func(at int) int, class float64) {
		out.add(o.With(factor, position, patch, class), 0, "%s", text).ID = id
	}
	const position = "embedding/position"
	turn := func(at int) int { return at }
	if o.Height > 1 && o.Height*o.Columns == n {
		turn = func(at int) int { return at%o.Height*o.Columns + at/o.Height }
		if o.Height == o.Columns {
			add("layout/permuted", "the patches are taken column by column, and not row by row", 1, same, turn, 1)
		}
	}
	if o.Table != nil {
		if o.Height > 1 && o.Height == o.Columns {
			add(position, "rows and columns of the grid of positions are exchanged", 1, func(t int) int {
				if t < front {
					return t
				}
				return front + turn(t-front)
			}, same, 1)
		}
		add(position, "the positions are not added", 0, same, same, 1)
		add(position, "the positions are added twice", 2, same, same, 1)
		add(position, "the positions are read backwards", 1, func(t int) int { return o.Tokens - 1 - t }, same, 1)
		for _, by := range []int{-1, 1} {
			add(position, fmt.Sprintf("the positions are read %+d rows off, not beyond their ends", by), 1,
				func(t int) int { return min(max(t+by, 0), o.Tokens-1) }, same, 1)
			add(position, fmt.Sprintf("the positions are read %+d rows off, round their ends", by), 1,
				func(t int) int { return (t + by + o.Tokens) % o.Tokens }, same, 1)
		}
		if front > 0 {
			add(position, "what stands in front of the patches has no positions, and they have those from 0 on", 1,
				func(t int) int { return t - front }, same, 1)
			add(position, "what stands in front of the patches has no positions", 1, func(t int) int {
				if t < front {
					return -1
				}
				return t
			}, same, 1)
			add(position, "the patches have no positions", 1, func(t int) int {
				if t < front {
					return t
				}
				return -1
			}, same, 1)
		}
	}
	if g := o.Grid; g != nil {
		other := func(text string, table []float64) {
			out.add(with(o, func(p *rebuild.Patches) { p.Table = table }), 0, "%s", text).ID = position
		}
		for _, way := range op.Resizings {
			if way != g.Way {
				other(fmt.Sprintf("the positions are brought to the size of the image in another way: %s, and not %s", way, g.Way), o.Resized(way))
			}
		}
		if o.Height*o.Columns <= g.Size*g.Size {
			other("the positions are not brought to the size of the image: the first rows are taken",
				slices.Concat(g.Class, g.Rows[:o.Height*o.Columns*o.Out.Width]))
		}
	}
	if front > 0 {
		add("image/class-token", "the token in front of the patches is zero", 1, same, same, 0)
		add("image/class-token", "the token in front of the patches is added twice", 1, same, same, 2)
	}
	return out
}
