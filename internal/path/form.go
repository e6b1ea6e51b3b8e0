package path

import (
	"slices"

	"github.com/goparity/goparity/tensor"
)

// block is a tensor seen as [lines, outer, rows, inner].
type block struct{ lines, outer, rows, inner int }

// at is the first element of a row after an index of outer.
func (b block) at(line, outer, row int) int { return ((line*b.outer+outer)*b.rows + row) * b.inner }

// axes say where a port of the reference's pass has its rows and its keys.
type axes struct {
	row  int  // −1 for none
	each int  // elements of that axis for each row: the chosen experts of a token, its heads
	tail int  // elements after those of all rows, as of a convolution that is cut later
	line bool // axis 0 counts the lines of the grid
	keys bool // the last axis counts keys

	outer, inner []int // sizes in front of the row axis, without that of the lines, and after it
}

// in are the axes in a shape.
func (a axes) in(shape []int) axes {
	from := 0
	if a.line {
		from = 1
	}
	a.outer, a.inner = shape[from:max(a.row, from)], shape[max(a.row+1, from):]
	return a
}

// possible lists the axes that a shape may have on a grid, the likeliest first.
func possible(shape []int, g *Grid) (list []axes) {
	lined := len(shape) > 0 && shape[0] == g.Lines
	add := func(a axes) {
		list = append(list, a.in(shape))
		if last := len(shape) - 1; a.row < last && a.each == 1 && shape[last] == g.Rows {
			a.keys = true
			list = append(list, a.in(shape))
		}
	}
	var tails []axes
	for i := 1; i < len(shape); i++ {
		switch tail := shape[i] - g.Rows; {
		case tail == 0 && (lined || g.Lines == 1):
			add(axes{row: i, each: 1, line: lined})
		case 0 < tail && tail <= maxTail && lined:
			tails = append(tails, axes{row: i, each: 1, tail: tail, line: true}.in(shape))
		}
	}
	if n := g.Lines * g.Rows; len(shape) > 0 && shape[0] > 0 && shape[0]%n == 0 {
		add(axes{row: 0, each: shape[0] / n})
	}
	return append(list, tails...)
}

// record is how a tensor of a forward pass lies.
type record struct {
	block
	place func(item, i int) (line, row int) // where the i-th token of an item lies
	width int                               // of its key axis
	keys  [][]int                           // by item: the positions of its keys, see columns
	last  bool                              // it has the last row of each item only
	cache bool                              // its rows are keys
}

// fit finds how a tensor of a forward pass lies by the axes that the reference's has; false if it does
// not. Rows may lie padded, or evenly, in lines; one after the other; or be the last of each item only. Those
// of a cache are the keys of each item. Axes of one element come and go, and those of lines and rows may be one.
func (a axes) fit(shape []int, pass *Pass, cache bool) (record, bool) {
	outer, inner, width := a.outer, a.inner, 0
	if a.keys && len(shape) > 0 {
		width = shape[len(shape)-1]
		inner = append(slices.Clone(inner[:len(inner)-1]), width)
	}
	n := len(pass.Items)
	each := record{block: block{lines: n, rows: 1}, last: true, place: func(item, _ int) (int, int) { return item, 0 }}
	ways := spreads(pass)
	switch {
	case cache:
		if lines, _ := pass.Size(); lines > 0 {
			n = lines
		}
		width = product(shape) / max(n*product(outer)*product(inner), 1)
		ways = []record{{block: block{lines: n, rows: width}, place: pass.Place, cache: true}}
	case a.tail == 0 && a.each == 1:
		ways = append(ways, each)
	}
	for _, r := range ways {
		r.outer, r.inner, r.width = product(outer), product(inner)*a.each, width
		full := slices.Concat(outer, []int{r.rows*a.each + a.tail}, inner)
		shapes := [][]int{append([]int{r.lines}, full...)}
		if r.lines == 1 {
			shapes = append(shapes, full)
		}
		if a.tail == 0 && !cache && len(outer) == 0 {
			shapes = append(shapes, append([]int{r.lines * r.rows * a.each}, inner...))
		}
		if a.tail == 0 && !cache && r.rows*a.each == 1 {
			shapes = append(shapes, slices.Concat([]int{r.lines}, outer, inner))
		}
		if slices.ContainsFunc(shapes, func(s []int) bool { return slices.Equal(s, shape) }) {
			r.rows += a.tail
			return r, true
		}
	}
	return record{}, false
}

// spreads are how the rows of a pass may lie: one after the other, and in lines, padded or evenly.
func spreads(pass *Pass) []record {
	list := []record{{block: block{lines: 1, rows: len(pass.Rows)},
		place: func(item, i int) (int, int) { return 0, pass.offset(item) + i }}}
	if lines, rows := pass.Size(); lines > 0 {
		list = append(list, record{block: block{lines: lines, rows: rows}, place: pass.Place})
	}
	return list
}

func product(sizes []int) int {
	n, _ := tensor.NumElems(sizes) // those of tensors, which fit
	return n
}

// Grid says which token each row of the reference's pass is: Lines sequences of Rows rows each, as
// padded batches have, or one line.
type Grid struct {
	Lines, Rows int
	Cells       []Cell // Lines × Rows
}

// Cell is a row of the reference's pass.
type Cell struct {
	Run      *Run // of the candidate, whose rows lie here; nil for padding and for what it did not run
	Position int  // in the sequence, −1 for padding
}

// NewGrid lays runs of the candidate on a forward pass of the reference: by item, nil for none.
func NewGrid(pass *Pass, runs []*Run) *Grid {
	ways := spreads(pass)
	way := ways[len(ways)-1]
	g := &Grid{way.lines, way.rows, slices.Repeat([]Cell{{Position: -1}}, way.lines*way.rows)}
	for j, item := range pass.Items {
		for i := range item.To - item.From {
			line, row := way.place(j, i)
			g.Cells[line*g.Rows+row] = Cell{runs[j], item.From + i}
		}
	}
	return g
}

// cells are those of each run, by position; runs lists these runs.
func (g *Grid) cells() (runs []*Run, at map[*Run]map[int]int) {
	at = map[*Run]map[int]int{}
	for i, c := range g.Cells {
		if c.Run == nil {
			continue
		}
		if at[c.Run] == nil {
			runs, at[c.Run] = append(runs, c.Run), map[int]int{}
		}
		at[c.Run][c.Position] = i
	}
	return runs, at
}
