package page

import (
	"fmt"

	"github.com/goparity/goparity/internal/report"
)

// paths are the report's runs along execution paths: a table, and a picture path × depth.
type paths struct {
	Rows          []pathRow
	Grid          []gridRow
	Width, Height int
}

type pathRow struct {
	Name, Case, Matches, Consistent, First string
	Holds                                  bool
}

type gridRow struct {
	Name  string
	Y     int
	Cells []gridCell
}

type gridCell struct {
	X, Width    int
	Color, Text string
	First       bool
}

// The picture's sizes, in the pixels of its own coordinates.
const (
	gridWidth = 1000
	gridLeft  = 180
	gridRowOf = 22
)

// pathsOf is nil where there are no execution paths.
func pathsOf(r *report.Report) *paths {
	if len(r.Paths) == 0 {
		return nil
	}
	out := &paths{Width: gridWidth}
	words := func(a *report.Agreement) string {
		if a == nil {
			return "not judged"
		}
		return text(a.String())
	}
	for _, p := range r.Paths[:min(len(r.Paths), maxPaths)] {
		row := pathRow{Name: text(p.Path), Case: text(p.Case), Matches: words(p.Matches), Consistent: words(p.Consistent),
			Holds: p.Matches != nil && p.Matches.Holds}
		if p.First != nil {
			row.First = text(p.First.String())
		}
		out.Rows = append(out.Rows, row)
	}
	g := report.PathGrid(r)
	if g == nil {
		return out
	}
	g = g.Narrow(maxColumns)
	x := func(i int) int { return gridLeft + (gridWidth-gridLeft)*i/len(g.Layers) }
	for i, from := range g.Rows[:min(len(g.Rows), maxPaths)] {
		row := gridRow{Name: text(from.Name), Y: i * gridRowOf}
		for k, cell := range from.Cells {
			if !cell.Compared {
				continue
			}
			red, green, blue := cell.Color()
			word := "holds"
			if !cell.Holds {
				word = "wrong"
			}
			row.Cells = append(row.Cells, gridCell{X: x(k), Width: max(x(k+1)-x(k), 1), Color: fmt.Sprintf("#%02x%02x%02x", red, green, blue),
				Text: fmt.Sprintf("%s, %s: %s, worst row rel. L2 %.3g", row.Name, text(g.Layers[k]), word, cell.Error), First: k == from.First})
		}
		out.Grid = append(out.Grid, row)
	}
	out.Height = len(out.Grid) * gridRowOf
	return out
}
