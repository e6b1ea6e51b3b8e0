package plot

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// The picture's size, in pixels, and the place in it of what the axes enclose.
const width, height = 1472, 736

var frame = image.Rect(88, 62, width-16, height-94)

// room is what is left free of points within the frame, at its top and bottom, for notes.
const room = 26

// colors of the components, told apart by people who see red and green alike (Okabe and Ito), and
// by their shade in grey.
var colors = map[report.Component]color.RGBA{
	report.Attention: {0x00, 0x72, 0xb2, 0xff},
	report.MLP:       {0xe6, 0x9f, 0x00, 0xff},
	report.Norm:      {0x00, 0x9e, 0x73, 0xff},
	report.Embedding: {0xcc, 0x79, 0xa7, 0xff},
	report.Head:      {0xd5, 0x5e, 0x00, 0xff},
	report.Other:     {0x6b, 0x6b, 0x6b, 0xff},
}

var (
	ink  = color.RGBA{0x22, 0x22, 0x22, 0xff}
	soft = color.RGBA{0x77, 0x77, 0x77, 0xff}
	grid = color.RGBA{0xe4, 0xe4, 0xe4, 0xff}
	mark = color.RGBA{0xc0, 0x10, 0x10, 0xff}
)

var words = map[report.Mode]string{report.Standard: "without injection", report.Injected: "with injection"}

// chart is a report on its way to a picture.
type chart struct {
	*canvas
	scale
	points []report.Point
}

// PNG draws the mean squared error of each output over the order in which the reference ran them,
// on a logarithmic scale, coloured by component. The points of mode are filled, those of the other
// mode are rings. The first divergence is a red line with its name. An MSE of zero is drawn on a
// line of its own below all others, one that is infinite (a NaN or an infinity without its match)
// above them.
//
// Runs along execution paths and tokens are drawn by package page alone. A report without figures is drawn as an empty
// frame that says so.
func PNG(w io.Writer, r *report.Report, mode report.Mode) error {
	canvas, err := newCanvas(width, height)
	if err != nil {
		return err
	}
	points := report.Depth(r)
	c := chart{canvas, newScale(points), points}
	other := report.Injected
	if mode == report.Injected {
		other = report.Standard
	}
	title := fmt.Sprintf("%s, %s: %s: %s", r.Fixture, words[mode], strings.ToUpper(string(r.Verdict)),
		report.Headline(r))
	c.write(c.text, c.fit(c.text, title, width-40), width/2, 22, 0.5, ink)
	c.axes()
	if c.none {
		c.write(c.text, "no row has figures: there is nothing to draw", width/2, height/2, 0.5, ink)
	}
	c.divergence(r.FirstDivergence)
	c.scatter(other, true)
	c.scatter(mode, false)
	c.legend(mode, other)
	return png.Encode(w, c.RGBA)
}

// x returns the place of a point.
func (c chart) x(i int) float64 {
	return float64(frame.Min.X) + float64(frame.Dx())*float64(i+1)/float64(len(c.points)+1)
}

// y returns the place of a share of the vertical axis.
func (c chart) y(share float64) float64 {
	return float64(frame.Max.Y-room) - share*float64(frame.Dy()-2*room)
}

func (c chart) axes() {
	caption, ticks := xAxis(c.points)
	for _, t := range ticks {
		x := int(c.x(int(t.at)))
		c.fill(image.Rect(x, frame.Min.Y, x+1, frame.Max.Y), grid)
		c.fill(image.Rect(x, frame.Max.Y, x+1, frame.Max.Y+6), soft)
		c.write(c.small, t.label, x, frame.Max.Y+16, 0.5, ink)
	}
	for _, t := range c.ticks() {
		y := int(c.y(t.at))
		c.fill(image.Rect(frame.Min.X, y, frame.Max.X, y+1), grid)
		c.fill(image.Rect(frame.Min.X-6, y, frame.Min.X, y+1), soft)
		c.write(c.small, t.label, frame.Min.X-10, y, 1, ink)
	}
	c.fill(image.Rect(frame.Min.X, frame.Min.Y, frame.Min.X+1, frame.Max.Y), soft)
	c.fill(image.Rect(frame.Min.X, frame.Max.Y, frame.Max.X, frame.Max.Y+1), soft)
	c.write(c.small, "mean squared error", 16, frame.Min.Y-14, 0, ink)
	c.write(c.small, caption, (frame.Min.X+frame.Max.X)/2, frame.Max.Y+40, 0.5, ink)
	if c.zeros > 0 {
		c.apart(0, fmt.Sprintf("MSE 0, drawn below the scale: %d", c.zeros))
	}
	if c.infinites > 0 {
		c.apart(1, fmt.Sprintf("NaN or infinity without its match: %d", c.infinites))
	}
}

// apart draws the line of the errors that the scale has no place for.
func (c chart) apart(share float64, note string) {
	y := int(c.y(share))
	c.dashes(image.Rect(frame.Min.X, y, frame.Max.X, y+1), 5, soft)
	c.write(c.small, note, frame.Max.X-4, y+14, 1, soft)
}

func (c chart) scatter(mode report.Mode, rings bool) {
	radius := 4.6
	switch n := len(c.points); {
	case n > 600:
		radius = 2.6
	case n > 200:
		radius = 3.4
	}
	inner := -1.0
	if rings {
		inner = radius - 1.2
	}
	for _, component := range report.Components {
		for i := range c.points {
			if mse, ok := c.points[i].Error(mode); ok && c.points[i].Component == component {
				c.dot(c.x(i), c.y(c.at(mse)), inner, radius, colors[component])
			}
		}
	}
}

// divergence marks the first divergence, at the point of its row or the first one after it.
func (c chart) divergence(d *report.Divergence) {
	for i := range c.points {
		if c.points[i].First == nil {
			continue
		}
		x := int(c.x(i))
		c.dashes(image.Rect(x-1, frame.Min.Y, x+1, frame.Max.Y), 7, mark)
		at, share := x+6, 0.0
		if i > len(c.points)/2 {
			at, share = x-6, 1
		}
		note := c.fit(c.small, "first divergence: "+d.Where(), frame.Dx()/2-10)
		c.write(c.small, note, at, frame.Min.Y+10, share, mark)
		return
	}
}

const maxTicks = 32

// xAxis numbers the blocks of the model, each at its first point; a model without blocks has its
// points numbered.
func xAxis(points []report.Point) (caption string, ticks []tick) {
	last, outputs := "", 0
	for i := range points {
		if !points[i].Computed {
			outputs++
		}
		block := label.Block(label.Name(points[i].Layer))
		if block != "" && block != last {
			last = block
			ticks = append(ticks, tick{float64(i), label.Last(block)})
		}
	}
	caption = fmt.Sprintf("%d outputs, in execution order; the numbers are those of the blocks", outputs)
	if len(ticks) < 2 {
		caption, ticks = "outputs, in execution order", nil
		for i := range points {
			ticks = append(ticks, tick{float64(i), strconv.Itoa(i)})
		}
	}
	var shown []tick
	for i, every := 0, step(len(ticks), maxTicks); i < len(ticks); i += every {
		shown = append(shown, ticks[i])
	}
	return caption, shown
}

// legend draws one line below the plot: the components that there are, and what filled points and
// rings mean.
func (c chart) legend(mode, other report.Mode) {
	x, y := frame.Min.X+6, height-18
	item := func(name string) { x += 12 + c.write(c.small, name, x+12, y, 0, ink) + 26 }
	for _, component := range report.Components {
		n, computed := 0, 0
		for i := range c.points {
			if c.points[i].Component == component {
				n++
				if c.points[i].Computed {
					computed++
				}
			}
		}
		if n > 0 {
			c.fill(image.Rect(x-5, y-5, x+5, y+5), colors[component])
			item(fmt.Sprintf("%s (%d)", component, n-computed))
		}
	}
	for _, m := range []struct {
		mode  report.Mode
		inner float64
	}{{mode, -1}, {other, 3.8}} {
		name := words[m.mode]
		if report.StatisticsOf(c.points, m.mode, "").N == 0 {
			name += " (not run)"
		}
		c.dot(float64(x), float64(y), m.inner, 5, ink)
		item(name)
	}
}
