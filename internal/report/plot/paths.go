package plot

import (
	"fmt"
	"image"
	"image/color"

	"github.com/goparity/goparity/internal/report"
)

// The rows of execution paths: their height, what is above and below them, and most columns.
const (
	rowHeight  = 22
	pathsAbove = 46
	pathsBelow = 46
	pathsLeft  = 260
	maxColumns = 480
)

var white = color.RGBA{0xff, 0xff, 0xff, 0xff}

// paths is the picture path × depth.
type paths struct{ *report.Grid }

func newPaths(r *report.Report) paths {
	if g := report.PathGrid(r); g != nil {
		return paths{g.Narrow(maxColumns)}
	}
	return paths{}
}

func (p paths) height() int {
	if p.Grid == nil {
		return 0
	}
	return pathsAbove + len(p.Rows)*rowHeight + pathsBelow
}

// draw draws each run as a row of cells, coloured by the error and by whether it is within the
// tolerances. The layer that is wrong first is framed.
func (p paths) draw(c *canvas) {
	if p.Grid == nil {
		return
	}
	left, right, top := pathsLeft, width-16, height+pathsAbove
	c.write(c.text, "Execution paths: the worst row of each layer, in the reference's order", width/2, height+20, 0.5, ink)
	x := func(i int) int { return left + (right-left)*i/len(p.Layers) }
	for i, row := range p.Rows {
		y := top + i*rowHeight
		c.write(c.small, c.fit(c.small, row.Name, left-24), left-10, y+rowHeight/2, 1, ink)
		for k, cell := range row.Cells {
			if cell.Compared {
				gap := min(1, (x(k+1)-x(k))/4)
				c.fill(image.Rect(x(k), y+1, x(k+1)-gap, y+rowHeight-1), shade(cell))
			}
		}
		if k := row.First; k >= 0 {
			box := image.Rect(x(k)-1, y, max(x(k+1), x(k)+8), y+rowHeight)
			inner := shade(row.Cells[k])
			for d, col := range []color.RGBA{ink, ink, white, white, inner} {
				c.fill(box.Inset(d), col)
			}
		}
	}
	y := top + len(p.Rows)*rowHeight + 20
	at := left
	item := func(col color.RGBA, name string) {
		c.fill(image.Rect(at, y-6, at+18, y+6), col)
		at += 24 + c.write(c.small, name, at+24, y, 0, ink) + 24
	}
	for _, e := range []float64{1e-7, 1e-4, 1e-2} {
		item(shade(report.GridCell{Compared: true, Holds: true, Error: e}), fmt.Sprintf("holds, rel. L2 %.0e", e))
	}
	for _, e := range []float64{1e-3, 1} {
		item(shade(report.GridCell{Compared: true, Error: e}), fmt.Sprintf("wrong, %.0e", e))
	}
	c.write(c.small, "framed: wrong first", at, y, 0, ink)
}

func shade(c report.GridCell) color.RGBA {
	r, g, b := c.Color()
	return color.RGBA{r, g, b, 0xff}
}
