package export_test

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
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/toy"
)

func draw(t *testing.T, r *report.Report, mode report.Mode) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, export.PNG(&b, r, mode))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

// count is how many pixels of the area from the given left and top share (per cent) have nearly
// this colour.
func count(img image.Image, c color.RGBA, from, to int) int { return len(rowsOf(img, c, from, to)) }

// rowsOf has the row of each pixel that count counts, from above.
func rowsOf(img image.Image, c color.RGBA, from, to int) (rows []int) {
	w := img.Bounds().Dx()
	for y := range img.Bounds().Dy() {
		for x := w * from / 100; x < w*to/100; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			near := func(a uint32, b uint8) bool { return math.Abs(float64(a>>8)-float64(b)) < 12 }
			if near(r, c.R) && near(g, c.G) && near(b, c.B) {
				rows = append(rows, y)
			}
		}
	}
	return rows
}

var (
	blue = color.RGBA{0x00, 0x72, 0xb2, 0xff} // attention
	red  = color.RGBA{0xc0, 0x10, 0x10, 0xff} // the first divergence
)

func TestPNG(t *testing.T) {
	wrong, right := draw(t, toy.DeepReport(77, 20), report.Standard), draw(t, toy.DeepReport(77, -1), report.Standard)
	assert.Greater(t, wrong.Bounds().Dx(), 1200, "legible")
	assert.Greater(t, count(wrong, blue, 0, 100), 1000, "attention is drawn")
	assert.Greater(t, count(wrong, red, 25, 35), 15, "block 20 of 77 is marked")
	assert.Zero(t, count(wrong, red, 60, 100), "and nothing else")
	assert.Zero(t, count(right, red, 0, 100), "no divergence, no mark")
	late := draw(t, toy.DeepReport(77, 60), report.Standard)
	assert.Positive(t, count(wrong, red, 36, 50), "its name stands to the right")
	assert.Positive(t, count(late, red, 45, 62), "or to the left, where there is more room")
	assert.Zero(t, count(late, red, 72, 100), "and nothing after it")
	assert.NotEqual(t, wrong, draw(t, toy.DeepReport(77, 20), report.Injected), "the other mode is another picture")
}

// Whatever the metrics are, there is a picture.
func TestExtremes(t *testing.T) {
	one := toy.DeepReport(1, -1)
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
	for _, data := range []string{`{"schema":1,"verdict":"fail","first_divergence":{},"layers":[{"status":"fail","standard":{"mse":-1,"n":1}}]}`,
		`{"schema":1,"verdict":"fail","kind":"drift","layers":[{"status":"fail"},{"status":"inherited","injected":{"mse":"NaN","n":-1}}]}`} {
		r, err := report.Read(strings.NewReader(data))
		require.NoError(t, err)
		draw(t, r, report.Injected)
	}
	// Errors of zero lie below all others, infinite ones above: of one block, three outputs from the left.
	three := &report.Report{Verdict: report.Fail}
	for i, mse := range []float64{math.Inf(1), 1e-6, 0} {
		three.Layers = append(three.Layers, one.Layers[5])
		l := &three.Layers[i]
		l.Layer, l.Standard = strings.Repeat("a", i+1)+".self_attn", &report.Metrics{N: 1, MSE: report.Float(mse)}
	}
	img, last := draw(t, three, report.Standard), 0
	for i := range 3 {
		at := rowsOf(img, blue, 20+20*i, 40+20*i)
		require.NotEmpty(t, at, "point %d", i)
		assert.Greater(t, at[0], last+50, "point %d", i)
		last = at[0]
	}
	huge := toy.DeepReport(2, -1)
	huge.Layers[0].Standard.MSE, huge.Layers[1].Standard.MSE = math.MaxFloat64, 5e-324
	draw(t, huge, report.Injected)
}

// No name, however long, runs over the edge.
func TestLongNames(t *testing.T) {
	long := toy.DeepReport(4, 2)
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
