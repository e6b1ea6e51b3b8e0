package plot_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/plot"
	"github.com/goparity/goparity/internal/report/reporttest"
)

func draw(t *testing.T, r *report.Report, mode report.Mode) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, plot.PNG(&b, r, mode))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

// count is how many pixels of the area from the given left and top share (per cent) have nearly
// this colour.
func count(img image.Image, c color.RGBA, from, to int) int {
	n, w := 0, img.Bounds().Dx()
	for y := range img.Bounds().Dy() {
		for x := w * from / 100; x < w*to/100; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			near := func(a uint32, b uint8) bool { return math.Abs(float64(a>>8)-float64(b)) < 12 }
			if near(r, c.R) && near(g, c.G) && near(b, c.B) {
				n++
			}
		}
	}
	return n
}

var (
	blue = color.RGBA{0x00, 0x72, 0xb2, 0xff} // attention
	red  = color.RGBA{0xc0, 0x10, 0x10, 0xff} // the first divergence
)

func TestPNG(t *testing.T) {
	wrong, right := draw(t, reporttest.Deep(77, 20), report.Standard), draw(t, reporttest.Deep(77, -1), report.Standard)
	assert.Greater(t, wrong.Bounds().Dx(), 1200, "legible")
	assert.Greater(t, count(wrong, blue, 0, 100), 1000, "attention is drawn")
	assert.Greater(t, count(wrong, red, 25, 35), 15, "block 20 of 77 is marked")
	assert.Zero(t, count(wrong, red, 60, 100), "and nothing else")
	assert.Zero(t, count(right, red, 0, 100), "no divergence, no mark")
	assert.NotEqual(t, wrong, draw(t, reporttest.Deep(77, 20), report.Injected), "the other mode is another picture")
}

// Runs along execution paths are drawn below: what is beyond its limit is dark, and the first
// divergence of each run has its mark.
func TestPathPicture(t *testing.T) {
	img := draw(t, reporttest.Along(77, 20), report.Standard)
	plain := draw(t, reporttest.Deep(77, 20), report.Standard)
	height := plain.Bounds().Dy()
	assert.Greater(t, img.Bounds().Dy(), height, "below the plot")
	below := img.(interface {
		SubImage(image.Rectangle) image.Image
	}).SubImage(image.Rect(0, height, img.Bounds().Dx(), img.Bounds().Dy()))
	assert.Greater(t, darker(below, 36, 100), 10000, "wrong from block 20 of 77 on")
	assert.Zero(t, darker(below, 13, 34), "and not before")
	assert.Greater(t, count(img, red, 34, 36), count(plain, red, 34, 36)+20, "marked there")

	all := reporttest.Along(2, 1)
	for i := range all.PathDepth.Runs {
		for k := range all.PathDepth.Runs[i].Errors {
			all.PathDepth.Runs[i].Errors[k] = report.Float([]float64{0, math.NaN(), math.Inf(1), -1, 5e-324, math.MaxFloat64}[k%6])
		}
	}
	draw(t, all, report.Standard)
	all.PathDepth.Runs[0].Errors, all.PathDepth.Runs[1].Errors = nil, nil // what no version writes
	draw(t, all, report.Standard)
}

// darker is how many pixels between two shares of the width (per cent) have the colours of large
// errors.
func darker(img image.Image, from, to int) int {
	n, b := 0, img.Bounds()
	for y := b.Min.Y; y < b.Max.Y-60; y++ { // without the lines of text
		for x := b.Dx() * from / 100; x < b.Dx()*to/100; x++ {
			if r, g, _, _ := img.At(x, y).RGBA(); r>>8 < 0x90 && r>>8 > 0x40 && g>>8 < 0x28 {
				n++
			}
		}
	}
	return n
}

// Whatever the figures are, there is a picture.
func TestExtremes(t *testing.T) {
	one := reporttest.Deep(1, -1)
	for _, c := range []struct {
		mse    float64
		reason string
	}{
		{0, "all are equal"}, {math.Inf(1), "all are infinite"}, {math.NaN(), "all are NaN"}, {5e-324, "the least"},
		{math.MaxFloat64, "the largest"}, {-1, "none at all"}, {1, "a power of ten"},
	} {
		for i := range one.Layers {
			one.Layers[i].Standard.MSE, one.Layers[i].Injected = report.Float(c.mse), nil
		}
		img := draw(t, one, report.Standard)
		assert.Positive(t, count(img, blue, 0, 100), c.reason)
	}
	draw(t, &report.Report{Verdict: report.Error, Error: "nothing \x1b was \u4e16 compared"}, report.Standard)
	huge := reporttest.Deep(2, -1)
	huge.Layers[0].Standard.MSE, huge.Layers[1].Standard.MSE = math.MaxFloat64, 5e-324
	draw(t, huge, report.Injected)
}

// No name, however long, runs over the edge.
func TestLongNames(t *testing.T) {
	long := reporttest.Deep(4, 2)
	long.Fixture = strings.Repeat("W", 300)
	for i := range long.Layers {
		if long.Layers[i].Layer == long.FirstDivergence.Layer {
			long.Layers[i].Layer += strings.Repeat(".W", 150)
		}
	}
	long.FirstDivergence.Layer += strings.Repeat(".W", 150)
	img := draw(t, long, report.Standard)
	assert.Positive(t, count(img, red, 0, 100), "marked")
	for y := range img.Bounds().Dy() {
		for _, x := range []int{0, img.Bounds().Dx() - 1} {
			require.Equal(t, color.RGBA{0xff, 0xff, 0xff, 0xff}, img.At(x, y), "%d, %d", x, y)
		}
	}
}

func BenchmarkPNG(b *testing.B) {
	r := reporttest.Deep(77, 20)
	for b.Loop() {
		var out bytes.Buffer
		if err := plot.PNG(&out, r, report.Standard); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTokens draws generations below the rest, in the colours of what was chosen.
func TestTokens(t *testing.T) {
	draw := func(tokens ...report.Token) image.Image {
		r := &report.Report{Fixture: "x", Verdict: report.Error, Error: "x", Generations: []report.Generation{{Case: "short", Verdict: "tie", Text: "TIE", Positions: tokens}}}
		var b bytes.Buffer
		require.NoError(t, plot.PNG(&b, r, report.Standard))
		im, err := png.Decode(&b)
		require.NoError(t, err)
		return im
	}
	count := func(im image.Image, want color.RGBA) (n int) {
		for y := im.Bounds().Min.Y; y < im.Bounds().Max.Y; y++ {
			for x := im.Bounds().Min.X; x < im.Bounds().Max.X; x++ {
				if color.RGBAModel.Convert(im.At(x, y)) == want {
					n++
				}
			}
		}
		return n
	}
	diverged, tie := color.RGBA{0xa0, 0x10, 0x20, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	same := draw(report.Token{Choice: "same", Gap: 100, OwnGap: 90, KL: 1e-6})
	mixed := draw(report.Token{Choice: "diverged", Gap: 100, OwnGap: -3, KL: 1}, report.Token{Choice: "tie", Gap: 0.3, OwnGap: -0.1, KL: 1e-3})
	assert.Less(t, count(same, diverged), 500, "the legend alone")
	assert.Greater(t, count(mixed, diverged), 10000, "a bar")
	assert.Greater(t, count(mixed, tie), count(same, tie)+1000)
	assert.Greater(t, same.Bounds().Dy(), 900, "below the error along the depth")
	draw() // no token
	nan := report.Float(math.NaN())
	draw(report.Token{Choice: "diverged", Gap: nan, OwnGap: nan, KL: report.Float(math.Inf(1))})
}
