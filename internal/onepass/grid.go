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
	ways := spreads(pass)
	way := ways[len(ways)-1]
	g := &Grid{way.lines, way.rows, make([]Cell, way.lines*way.rows)}
	for i := range g.Cells {
		g.Cells[i].Position = -1
	}
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
