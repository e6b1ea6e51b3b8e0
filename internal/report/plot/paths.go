package plot

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// The picture of path × depth, below the plot, in pixels.
const (
	pathsTop   = 62  // its title and scale
	pathRow    = 34  // a run
	pathHigh   = 22  // a cell beyond its limit
	pathsAxis  = 60  // the numbers of the blocks
	pathNote   = 22  // a line on a first divergence
	pathsLeft  = 176 // the names of the runs
	pathsBelow = 14
	mostPaths  = 40 // runs that are drawn
)

// ramp are colours from a small error to a large one, that are in order by their lightness alone.
// What is within the limit has the first half, what is beyond it the second.
var ramp = []color.RGBA{{0xee, 0xf1, 0xf6, 0xff}, {0xbe, 0xcd, 0xe6, 0xff}, {0xe2, 0x96, 0x82, 0xff}, {0xbe, 0x37, 0x3c, 0xff}, {0x50, 0x05, 0x23, 0xff}}

// shade is the colour of an error in units of the limit, where the worst is so large.
func shade(e, worst float64) color.RGBA {
	x := 0.0 // of the ramp, from 0 to 1
	switch {
	case e > 1 && math.IsInf(e, 1):
		x = 1
	case e > 1:
		x = 0.5 + 0.5*math.Log10(e)/max(math.Log10(worst), 1)
	case e > 1e-4:
		x = 0.25 * (1 + math.Log10(e)/4)
	}
	x *= float64(len(ramp) - 1)
	i := min(int(x), len(ramp)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (x-float64(i))*(float64(b)-float64(a)))) }
	a, b := ramp[i], ramp[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// pathsHeight is the room that the picture takes.
func pathsHeight(p *report.PathPicture) int {
	if p == nil {
		return 0
	}
	n := pathsTop + pathsAxis + pathsBelow
	for _, row := range p.Rows[:min(len(p.Rows), mostPaths)] {
		n += pathRow
		if row.First >= 0 {
			n += pathNote
		}
	}
	return n
}

// paths draws the picture below y: a cell within its limit is half as high as one beyond it, and
// the first divergence of a run is a mark above its cell.
func (c *canvas) paths(p *report.PathPicture, y int) {
	rows := p.Rows[:min(len(p.Rows), mostPaths)]
	c.write(c.text, "Execution paths: the error of each layer in units of its limit, the worst of all forward passes", 16, y+14, 0, ink)
	c.pathScale(p, y+42)
	y += pathsTop
	left, right := pathsLeft, width-16
	x := func(column int) int {
		return left + int(math.Round(float64(column*(right-left))/float64(len(p.Columns))))
	}
	c.pathTicks(p, x, y, y+len(rows)*pathRow)
	for _, row := range rows {
		c.write(c.small, c.fit(c.small, row.Name, pathsLeft-24), left-10, y+pathRow-pathHigh/2, 1, ink)
		for i, cell := range row.Cells {
			if math.IsNaN(cell.Error) {
				continue
			}
			top := y + pathRow - pathHigh/2
			if cell.Beyond() {
				top = y + pathRow - pathHigh
			}
			c.fill(image.Rect(x(i), top, max(x(i+1), x(i)+1), y+pathRow), shade(cell.Error, p.Worst))
		}
		c.fill(image.Rect(left, y+pathRow, right, y+pathRow+1), grid)
		y += pathRow
	}
	y += pathsAxis
	for i, row := range rows {
		if row.First < 0 {
			continue
		}
		c.pathMark((x(row.First)+x(row.First+1))/2, y-pathsAxis-(len(rows)-i)*pathRow+pathRow-pathHigh-9)
	}
	for _, row := range rows {
		if row.First >= 0 {
			c.pathMark(22, y+pathNote/2-7)
			c.write(c.small, c.fit(c.small, row.Name+": "+row.Text, width-60), 36, y+pathNote/2, 0, mark)
			y += pathNote
		}
	}
}

// pathMark draws a triangle whose tip points down from y.
func (c *canvas) pathMark(x, y int) {
	for k := range 8 {
		c.fill(image.Rect(x-7+k, y+k, x+8-k, y+k+1), mark)
	}
}

// pathTicks draws the numbers of the blocks below the rows, from top to bottom.
func (c *canvas) pathTicks(p *report.PathPicture, x func(int) int, top, bottom int) {
	var ticks []tick
	last := ""
	for i, l := range p.Columns {
		if block := label.Block(label.Name(l)); block != "" && block != last {
			last = block
			ticks = append(ticks, tick{float64(i), label.Last(block)})
		}
	}
	for i, every := 0, step(max(len(ticks), 1), maxTicks); i < len(ticks); i += every {
		at := x(int(ticks[i].at))
		c.fill(image.Rect(at, top, at+1, bottom+6), grid)
		c.write(c.small, ticks[i].label, at, bottom+16, 0, ink)
	}
	c.write(c.small, "layers in the reference's order; the numbers are those of the blocks", (pathsLeft+width-16)/2, bottom+38, 0.5, ink)
}

// pathScale draws what colours and heights mean.
func (c *canvas) pathScale(p *report.PathPicture, y int) {
	at := pathsLeft
	item := func(e float64, name string) {
		top := y
		if e > 1 {
			top = y - 9
		}
		c.fill(image.Rect(at, top, at+16, y+9), shade(e, p.Worst))
		at += 22
		at += c.write(c.small, name, at, y, 0, ink) + 22
	}
	item(1e-4, "1e-4 of the limit")
	item(0.01, "0.01")
	item(1, "just within it")
	if p.Worst > 1 {
		item(math.Nextafter(1, 2), "just beyond it")
		item(p.Worst, strings.Replace(fmt.Sprintf("%.3g times it", p.Worst), "e+0", "e", 1))
	}
	c.pathMark(at+6, y-5)
	c.write(c.small, "first divergence; blank: not compared", at+20, y, 0, ink)
}
