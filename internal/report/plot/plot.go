package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/goparity/goparity/internal/report"
)

// The picture's size.
const (
	width, height = 34 * vg.Centimeter, 17 * vg.Centimeter
	dpi           = 110
)

// variant is the font without serifs.
const variant = "Sans"

// colors of the components, told apart by people who see red and green alike (Okabe and Ito), and by their shade in grey.
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
	soft = color.RGBA{0x88, 0x88, 0x88, 0xff}
	grid = color.RGBA{0xd8, 0xd8, 0xd8, 0xff}
	mark = color.RGBA{0xc0, 0x10, 0x10, 0xff}
)

// PNG draws the mean squared error of each output over the order in which the golden ran them, on a logarithmic scale, coloured by component. The points of mode are filled,
// those of the other mode are rings. The first divergence is a red line with its name. An MSE of zero is drawn on a line of its own below all others, one that is infinite (a NaN or
// an infinity without its match) above them.
//
// A report without figures is drawn as an empty frame that says so.
func PNG(w io.Writer, r *report.Report, mode report.Mode) error {
	points := report.Depth(r)
	s := newScale(points)
	p := plot.New()
	p.Title.Text = title(r, mode)
	p.Title.TextStyle.Font.Size = 11
	p.Title.Padding = 6
	p.X.Label.Text, p.X.Tick.Marker = xAxis(points)
	p.Y.Label.Text = "mean squared error"
	p.Y.Tick.Marker = s
	p.X.Min, p.X.Max = -1, float64(max(len(points), 1))
	p.Y.Min, p.Y.Max = s.bottom-0.7, s.top+0.7
	p.Title.TextStyle.Font.Variant = variant
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Variant, a.Tick.Label.Font.Variant, a.Label.TextStyle.Font.Size = variant, variant, 10
		a.Label.TextStyle.Color, a.Tick.Label.Color, a.Color, a.Tick.Color = ink, ink, soft, soft
	}
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
	p.Add(lines)
	if s.none {
		p.Title.Text += "\nno row has figures: there is nothing to draw"
	}
	s.special(p)
	other := report.Injected
	if mode == report.Injected {
		other = report.Standard
	}
	size := radius(len(points))
	s.divergence(p, points)
	s.scatter(p, points, other, draw.RingGlyph{}, size*0.9)
	s.scatter(p, points, mode, draw.CircleGlyph{}, size)

	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))
	canvas := draw.New(img)
	legend(draw.Crop(canvas, 0, 0, 0, -(height-0.9*vg.Centimeter)), points, mode, other)
	p.Draw(draw.Crop(canvas, 6, -10, 0.95*vg.Centimeter, -4))
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}

func title(r *report.Report, mode report.Mode) string {
	what := map[report.Mode]string{report.Standard: "without injection", report.Injected: "with injection"}[mode]
	t := fmt.Sprintf("%s, %s: %s: %s", r.Fixture, what, strings.ToUpper(string(r.Verdict)), report.Headline(r))
	return printable(t, 150)
}

// printable keeps what the font has, and so much of it as there is room for.
func printable(s string, n int) string {
	out := []rune(strings.Map(func(c rune) rune {
		switch {
		case c < ' ' || c == 0x7f:
			return ' '
		case c > 0x2fff:
			return '?'
		}
		return c
	}, s))
	if len(out) > n {
		out = append(out[:n-1], '…')
	}
	return string(out)
}

func radius(n int) vg.Length {
	switch {
	case n > 600:
		return 1.7
	case n > 200:
		return 2.2
	}
	return 3
}

// scale maps errors to the logarithmic axis, with a line for zeros below and one for what is infinite above.
type scale struct {
	bottom, top      float64 // of the axis
	zero, infinite   float64 // where these are drawn
	zeros, infinites int
	low, high        float64 // decades of the finite ones
	none             bool
}

func newScale(points []report.Point) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), none: true}
	for i := range points {
		for _, mode := range []report.Mode{report.Standard, report.Injected} {
			x, ok := points[i].Error(mode)
			if !ok {
				continue
			}
			s.none = false
			switch {
			case x == 0:
				s.zeros++
			case math.IsInf(x, 1):
				s.infinites++
			default:
				s.low, s.high = min(s.low, math.Log10(x)), max(s.high, math.Log10(x))
			}
		}
	}
	if s.low > s.high { // no finite one
		s.low, s.high = -12, 0
	}
	s.low, s.high = math.Floor(s.low), math.Ceil(s.high)
	if s.high == s.low {
		s.high++
	}
	step := max(1, (s.high-s.low)/12)
	s.bottom, s.top = s.low, s.high
	if s.zeros > 0 {
		s.zero = s.low - step
		s.bottom = s.zero
	}
	if s.infinites > 0 {
		s.infinite = s.high + step
		s.top = s.infinite
	}
	return s
}

func (s scale) y(mse float64) float64 {
	switch {
	case mse == 0:
		return s.zero
	case math.IsInf(mse, 1):
		return s.infinite
	}
	return math.Log10(mse)
}

// Ticks marks decades.
func (s scale) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	if s.zeros > 0 {
		ticks = append(ticks, plot.Tick{Value: s.zero, Label: "0"})
	}
	step := max(1, math.Ceil((s.high-s.low)/12))
	for e := s.low; e <= s.high; e += step {
		ticks = append(ticks, plot.Tick{Value: e, Label: fmt.Sprintf("1e%d", int(e))})
	}
	if s.infinites > 0 {
		ticks = append(ticks, plot.Tick{Value: s.infinite, Label: "NaN, Inf"})
	}
	return ticks
}

// special draws the lines of zeros and infinite ones.
func (s scale) special(p *plot.Plot) {
	line := func(y float64, note string) {
		l := &plotter.Line{XYs: plotter.XYs{{X: p.X.Min, Y: y}, {X: p.X.Max, Y: y}}}
		l.LineStyle = draw.LineStyle{Color: soft, Width: 0.6, Dashes: []vg.Length{3, 3}}
		labels := &plotter.Labels{XYs: plotter.XYs{{X: p.X.Max, Y: y}}, Labels: []string{note},
			TextStyle: []text.Style{style(p, soft, 8, text.XRight)}, Offset: vg.Point{X: -2, Y: -13}}
		p.Add(l, labels)
	}
	if s.zeros > 0 {
		line(s.zero, fmt.Sprintf("MSE 0, drawn below the scale: %d", s.zeros))
	}
	if s.infinites > 0 {
		line(s.infinite, fmt.Sprintf("NaN or infinity without its match: %d", s.infinites))
	}
}

func style(p *plot.Plot, c color.Color, size vg.Length, x text.XAlignment) text.Style {
	st := p.X.Tick.Label
	st.Color, st.Font.Size, st.XAlign, st.Rotation = c, size, x, 0
	st.YAlign = text.YBottom
	return st
}

func (s scale) scatter(p *plot.Plot, points []report.Point, mode report.Mode, shape draw.GlyphDrawer, size vg.Length) {
	for _, component := range report.Components {
		var xy plotter.XYs
		for i := range points {
			if mse, ok := points[i].Error(mode); ok && points[i].Component == component {
				xy = append(xy, plotter.XY{X: float64(i), Y: s.y(mse)})
			}
		}
		p.Add(&plotter.Scatter{XYs: xy, GlyphStyle: draw.GlyphStyle{Color: colors[component], Radius: size, Shape: shape}})
	}
}

// divergence marks the first divergence.
func (s scale) divergence(p *plot.Plot, points []report.Point) {
	for i := range points {
		if points[i].First == nil {
			continue
		}
		x := float64(i)
		l := &plotter.Line{XYs: plotter.XYs{{X: x, Y: p.Y.Min}, {X: x, Y: p.Y.Max}}}
		l.LineStyle = draw.LineStyle{Color: mark, Width: 1, Dashes: []vg.Length{5, 3}}
		align, dx := text.XLeft, vg.Length(4)
		if i > len(points)/2 {
			align, dx = text.XRight, -4
		}
		labels := &plotter.Labels{XYs: plotter.XYs{{X: x, Y: p.Y.Max}}, Labels: []string{"first divergence: " + printable(points[i].Name, 80)},
			TextStyle: []text.Style{style(p, mark, 9, align)}, Offset: vg.Point{X: dx, Y: -11}}
		p.Add(l, labels)
		return
	}
}

// blocks ticks the first point of each numbered block.
type blocks []plot.Tick

func (b blocks) Ticks(_, _ float64) []plot.Tick { return b }

const maxTicks = 30

// xAxis numbers the blocks of the model; a model without any gets the numbers of its points.
func xAxis(points []report.Point) (label string, ticks plot.Ticker) {
	var all []plot.Tick
	last := ""
	for i := range points {
		name, number := block(points[i].Layer)
		if number != "" && name+number != last {
			last = name + number
			all = append(all, plot.Tick{Value: float64(i), Label: number})
		}
	}
	if len(all) < 2 {
		return "outputs, in execution order", plot.DefaultTicks{}
	}
	outputs := 0
	for i := range points {
		if !points[i].Computed {
			outputs++
		}
	}
	every := (len(all) + maxTicks - 1) / maxTicks
	var out blocks
	for i := 0; i < len(all); i += every {
		out = append(out, all[i])
	}
	return fmt.Sprintf("%d outputs, in execution order; the numbers are those of the blocks", outputs), out
}

// block gives the name before a layer's first number, and the number.
func block(layer string) (name, number string) {
	elements := strings.Split(layer, ".")
	for i, e := range elements {
		if e != "" && strings.Trim(e, "0123456789") == "" {
			return strings.Join(elements[:i], "."), e
		}
	}
	return "", ""
}

// legend draws one line below the plot: the components that there are, and what filled points and rings mean.
func legend(c draw.Canvas, points []report.Point, mode, other report.Mode) {
	st := plot.New().X.Tick.Label
	st.Font.Variant = variant
	st.Color, st.Font.Size, st.XAlign, st.YAlign = ink, 9, text.XLeft, text.YCenter
	x, y := c.Min.X+2*vg.Centimeter, c.Center().Y
	item := func(col color.Color, shape draw.GlyphDrawer, label string) {
		c.DrawGlyph(draw.GlyphStyle{Color: col, Radius: 3.2, Shape: shape}, vg.Point{X: x, Y: y})
		x += 7
		c.FillText(st, vg.Point{X: x, Y: y}, label)
		x += st.Width(label) + 16
	}
	for _, component := range report.Components {
		n, computed := 0, 0
		for i := range points {
			if points[i].Component == component {
				n++
				if points[i].Computed {
					computed++
				}
			}
		}
		if n > 0 {
			item(colors[component], draw.BoxGlyph{}, fmt.Sprintf("%s (%d)", component, n-computed))
		}
	}
	words := map[report.Mode]string{report.Standard: "without injection", report.Injected: "with injection"}
	for _, m := range []struct {
		mode  report.Mode
		shape draw.GlyphDrawer
	}{{mode, draw.CircleGlyph{}}, {other, draw.RingGlyph{}}} {
		label := words[m.mode]
		if report.StatisticsOf(points, m.mode, "").N == 0 {
			label += " (not run)"
		}
		item(ink, m.shape, label)
	}
}
