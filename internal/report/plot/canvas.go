package plot

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// canvas is a white picture to draw on. Lengths are pixels.
type canvas struct {
	*image.RGBA
	font        *sfnt.Font
	text, small font.Face
}

func newCanvas(width, height int) (*canvas, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	c := &canvas{RGBA: image.NewRGBA(image.Rect(0, 0, width, height)), font: f}
	for face, size := range map[*font.Face]float64{&c.text: 16, &c.small: 14} {
		// At 72 dots per inch the size in points is the size in pixels.
		if *face, err = opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72}); err != nil {
			return nil, err
		}
	}
	c.fill(c.Rect, color.RGBA{0xff, 0xff, 0xff, 0xff})
	return c, nil
}

func (c *canvas) fill(r image.Rectangle, col color.RGBA) {
	draw.Draw(c.RGBA, r, image.NewUniform(col), image.Point{}, draw.Src)
}

// dashes draws a horizontal or vertical line of dashes of the given length.
func (c *canvas) dashes(r image.Rectangle, length int, col color.RGBA) {
	step := image.Pt(2*length, 0)
	if r.Dy() > r.Dx() {
		step = image.Pt(0, 2*length)
	}
	for dash := image.Rect(0, 0, length, length).Add(r.Min); dash.Overlaps(r); dash = dash.Add(step) {
		c.fill(dash.Intersect(r), col)
	}
}

// dot draws a ring between two radii around x, y, and a disc where inner is negative. Its edge is
// smooth: a pixel takes as much of the colour as the ring covers of it.
func (c *canvas) dot(x, y, inner, outer float64, col color.RGBA) {
	within := func(radius, distance float64) float64 { return min(max(radius-distance+0.5, 0), 1) }
	box := image.Rect(int(x-outer)-1, int(y-outer)-1, int(x+outer)+2, int(y+outer)+2)
	for py := box.Min.Y; py < box.Max.Y; py++ {
		for px := box.Min.X; px < box.Max.X; px++ {
			distance := math.Hypot(float64(px)+0.5-x, float64(py)+0.5-y)
			share := within(outer, distance) - within(inner, distance)
			mix := func(below, above uint8) uint8 {
				return uint8(math.Round(float64(below) + share*(float64(above)-float64(below))))
			}
			below := c.RGBAAt(px, py)
			c.SetRGBA(px, py, color.RGBA{mix(below.R, col.R), mix(below.G, col.G), mix(below.B, col.B), 0xff})
		}
	}
}

// write draws text with the given share of its width left of x and its middle at y, and returns its
// width.
func (c *canvas) write(face font.Face, s string, x, y int, share float64, col color.RGBA) int {
	width := font.MeasureString(face, s).Ceil()
	half := face.Metrics().CapHeight / 2
	d := font.Drawer{Dst: c.RGBA, Src: image.NewUniform(col), Face: face,
		Dot: fixed.Point26_6{X: fixed.I(x - int(share*float64(width))), Y: fixed.I(y) + half}}
	d.DrawString(s)
	return width
}

// fit returns as much of the text as there is room for, without what the font lacks.
func (c *canvas) fit(face font.Face, s string, width int) string {
	var buf sfnt.Buffer
	more := font.MeasureString(face, "…")
	var out []rune
	var end fixed.Int26_6
	cut := 0 // so many runes leave room for the ellipsis
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		if glyph, err := c.font.GlyphIndex(&buf, r); err != nil || glyph == 0 {
			r = '?'
		}
		if (end + more).Ceil() <= width {
			cut = len(out)
		}
		advance, _ := face.GlyphAdvance(r)
		out, end = append(out, r), end+advance
		if end.Ceil() > width {
			return string(append(out[:cut], '…'))
		}
	}
	return string(out)
}
