package export

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	gtext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// The picture's size, 1472×736 pixels, what is free at its edges, and the strip of the legend.
const (
	width, height = 1104 * vg.Length(1), 552 * vg.Length(1) // points
	margin        = 10 * vg.Length(1)
	legendWidth   = 172 * vg.Length(1)
)

// colors of the components, told apart by who sees red and green alike (Okabe and Ito), and in grey.
var colors = map[report.Component]color.Color{
	report.Attention: color.RGBA{0x00, 0x72, 0xb2, 0xff},
	report.MLP:       color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	report.Norm:      color.RGBA{0x00, 0x9e, 0x73, 0xff},
	report.Embedding: color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	report.Head:      color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	report.Other:     color.RGBA{0x6b, 0x6b, 0x6b, 0xff},
}

var red = color.RGBA{0xc0, 0x10, 0x10, 0xff}

var modes = map[report.Mode]string{report.Standard: "without injection", report.Injected: "with injection"}

type chart struct {
	*plot.Plot
	legend plot.Legend
	points []report.Point
	scale
}

// PNG draws the mean squared error of each output over the order in which the reference ran them, on a logarithmic
// scale, coloured by component. The points of mode are filled, those of the other mode are rings. The first
// divergence is a red line with its name. An MSE of zero is drawn below all others, one that is infinite (a NaN or an
// infinity without its match) above them.
func PNG(w io.Writer, r *report.Report, mode report.Mode) error {
	points := report.Depth(r)
	c := chart{plot.New(), plot.NewLegend(), points, newScale(points)}
	c.legend.Top, c.legend.Left, c.legend.Padding = true, true, 4
	title := fmt.Sprintf("%s, %s: %s: %s", r.Fixture, modes[mode], strings.ToUpper(string(r.Verdict)), report.Headline(r))
	c.Title.Text = fit(c.Title.TextStyle, title, width-3*legendWidth/2)
	c.Y.Label.Text = "mean squared error"
	c.X.Label.Text, c.X.Tick.Marker = xAxis(points)
	c.X.Min, c.X.Max = -1, float64(len(points))
	c.Y.Min, c.Y.Max, c.Y.Tick.Marker = c.low-c.gap-0.5, c.high+c.gap+0.5, c.ticks()
	c.Add(plotter.NewGrid())
	other := report.Injected
	if mode == report.Injected {
		other = report.Standard
	}
	c.scatter(mode, other)
	c.divergence(r.FirstDivergence)
	canvas := vgimg.New(width, height)
	all := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	c.Draw(draw.Crop(all, 0, -legendWidth, 0, 0))
	c.legend.Draw(draw.Crop(all, width-margin-legendWidth, 0, 0, -3*margin))
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// scatter adds the points of both modes, those of the second below, and says in the legend what they are.
func (c *chart) scatter(mode, other report.Mode) {
	radius := vg.Length(3.4)
	if len(c.points) > 300 {
		radius = 2
	}
	shapes := map[report.Mode]draw.GlyphDrawer{mode: draw.CircleGlyph{}, other: draw.RingGlyph{}}
	for _, m := range []report.Mode{other, mode} {
		for _, component := range report.Components {
			s := plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: colors[component], Radius: radius, Shape: shapes[m]}}
			for i := range c.points {
				if mse, ok := c.points[i].Error(m); ok && c.points[i].Component == component {
					s.XYs = append(s.XYs, plotter.XY{X: float64(i), Y: c.at(mse)})
				}
			}
			if len(s.XYs) == 0 {
				continue
			}
			if c.Add(&s); m == mode {
				c.legend.Add(string(component), &s)
			}
		}
	}
	for _, m := range []report.Mode{mode, other} {
		if report.StatisticsOf(c.points, m, "").N > 0 {
			c.legend.Add(modes[m], &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: color.Black, Radius: radius, Shape: shapes[m]}})
		}
	}
}

// divergence marks the first divergence, at the point of its row or the first one after it.
func (c *chart) divergence(d *report.Divergence) {
	i := slices.IndexFunc(c.points, func(p report.Point) bool { return p.First != nil })
	if i < 0 {
		return
	}
	top := plotter.XY{X: float64(i), Y: c.Y.Max}
	line := &plotter.Line{XYs: plotter.XYs{{X: top.X, Y: c.Y.Min}, top},
		LineStyle: draw.LineStyle{Color: red, Width: 1.5, Dashes: []vg.Length{5, 5}}}
	style := c.X.Tick.Label
	style.Color, style.YAlign, style.XAlign = red, gtext.YTop, gtext.XLeft
	at := vg.Point{X: 5, Y: -2}
	if i > len(c.points)/2 {
		style.XAlign, at.X = gtext.XRight, -5
	}
	name := fit(style, "first divergence: "+d.Where(), (width-2*legendWidth)/2)
	c.Add(line, &plotter.Labels{XYs: plotter.XYs{top}, Labels: []string{name}, TextStyle: []gtext.Style{style}, Offset: at})
}

// fit returns as much of a text as there is room for.
func fit(style gtext.Style, s string, room vg.Length) string {
	s = report.Clean(s)
	short := []rune(s)
	for style.Width(s) > room {
		short = short[:len(short)*9/10]
		s = string(short) + "…"
	}
	return s
}

// xAxis numbers the blocks of the model, each at its first point, or without blocks the points.
func xAxis(points []report.Point) (caption string, shown plot.ConstantTicks) {
	var blocks, places plot.ConstantTicks
	last := ""
	for i := range points {
		places = append(places, plot.Tick{Value: float64(i), Label: strconv.Itoa(i)})
		if block := label.Block(label.Name(points[i].Layer)); block != "" && block != last {
			last = block
			blocks = append(blocks, plot.Tick{Value: float64(i), Label: label.Last(block)})
		}
	}
	caption, ticks := "outputs, in execution order", places
	if len(blocks) > 1 {
		caption, ticks = caption+"; the numbers are those of the blocks", blocks
	}
	const most = 32
	for i := 0; i < len(ticks); i += step(len(ticks), most) {
		shown = append(shown, ticks[i])
	}
	return caption, shown
}

// scale is an axis of decades, with a place for zeros below and one for infinite errors above.
type scale struct {
	low, high        float64 // decades of the finite errors
	gap              float64 // between them and the places below and above
	zeros, infinites bool
}

func newScale(points []report.Point) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1)}
	for i := range points {
		for mode := range modes {
			mse, ok := points[i].Error(mode)
			switch {
			case !ok:
			case mse == 0:
				s.zeros = true
			case math.IsInf(mse, 1):
				s.infinites = true
			default:
				s.low, s.high = min(s.low, math.Floor(math.Log10(mse))), max(s.high, math.Ceil(math.Log10(mse)))
			}
		}
	}
	if s.low > s.high { // no finite one
		s.low, s.high = -12, 0
	}
	s.gap = max(1, (s.high-s.low)/12)
	return s
}

func (s scale) at(mse float64) float64 {
	return min(max(math.Log10(mse), s.low-s.gap), s.high+s.gap)
}

func (s scale) ticks() (ticks plot.ConstantTicks) {
	if s.zeros {
		ticks = append(ticks, plot.Tick{Value: s.at(0), Label: "0"})
	}
	every := float64(step(int(s.high-s.low)+1, 14))
	for e := math.Ceil(s.low/every) * every; e <= s.high; e += every {
		ticks = append(ticks, plot.Tick{Value: e, Label: fmt.Sprintf("1e%d", int(e))})
	}
	if s.infinites {
		ticks = append(ticks, plot.Tick{Value: s.at(math.Inf(1)), Label: "NaN, Inf"})
	}
	return ticks
}

// step returns the least of 1, 2, 5, 10, 20, 50, … of which at most most steps cover n.
func step(n, most int) int {
	for unit := 1; ; unit *= 10 {
		for _, s := range []int{unit, 2 * unit, 5 * unit} {
			if n <= s*most {
				return s
			}
		}
	}
}
