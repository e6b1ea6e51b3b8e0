package onepass

import "github.com/goparity/goparity/internal/path"

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
func NewGrid(pass *path.Pass, runs []*Run) *Grid {
	g := &Grid{}
	var at func(item, i int) int
	switch lines, rows := pass.Size(); {
	case lines > 0:
		g.Lines, g.Rows = lines, rows
		at = func(item, i int) int {
			line, row := pass.Place(item, i)
			return line*rows + row
		}
	default:
		g.Lines, g.Rows = 1, len(pass.Rows)
		at = func(item, i int) int { return pass.Offset(item) + i }
	}
	g.Cells = make([]Cell, g.Lines*g.Rows)
	for i := range g.Cells {
		g.Cells[i].Position = -1
	}
	for j, item := range pass.Items {
		for i := range item.To - item.From {
			g.Cells[at(j, i)] = Cell{runs[j], item.From + i}
		}
	}
	return g
}

// index returns the cells of a run by position.
func (g *Grid) index(r *Run) map[int]int {
	at := map[int]int{}
	for i, c := range g.Cells {
		if c.Run == r && c.Position >= 0 {
			at[c.Position] = i
		}
	}
	return at
}

// runs lists the runs that lie on the grid.
func (g *Grid) runs() (list []*Run) {
	seen := map[*Run]bool{}
	for _, c := range g.Cells {
		if c.Run != nil && !seen[c.Run] {
			seen[c.Run] = true
			list = append(list, c.Run)
		}
	}
	return list
}

// end is the number of tokens that the reference ran of a run's sequence.
func (g *Grid) end(r *Run) (n int) {
	for _, c := range g.Cells {
		if c.Run == r {
			n = max(n, c.Position+1)
		}
	}
	return n
}
