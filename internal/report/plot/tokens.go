package plot

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"github.com/goparity/goparity/internal/report"
)

// The pictures of generations, below the others, in pixels.
const (
	tokensTop  = 62 // their title and what colours mean
	tokensText = 26 // the name of a text
	gapHigh    = 96
	klHigh     = 48
	tokensGap  = 30 // between two texts
)

// choices are the colours of what the candidate chose, told apart by their lightness, too.
var choices = []struct {
	name, words string
	color       color.RGBA
}{
	{"same", "the reference's token", color.RGBA{0x6f, 0x9f, 0xc8, 0xff}},
	{"tie", "a tie", color.RGBA{0xe6, 0x9f, 0x00, 0xff}},
	{"diverged", "diverged", color.RGBA{0xa0, 0x10, 0x20, 0xff}},
}

func tokensHeight(texts []report.TokenPicture) int {
	if len(texts) == 0 {
		return 0
	}
	return tokensTop + len(texts)*(tokensText+gapHigh+klHigh+tokensGap)
}

// tokens draws texts below y: of each token by how much it is ahead of the other in the reference, a
// bar, and in the candidate, a line across it; below it the divergence of the two.
func (c *canvas) tokens(texts []report.TokenPicture, y int) {
	c.write(c.text, "Generation: by how much the reference's token is ahead, in units of the noise, and below it KL", 16, y+14, 0, ink)
	at := pathsLeft
	for _, k := range choices {
		c.fill(image.Rect(at, y+36, at+16, y+48), k.color)
		at += 22
		at += c.write(c.small, k.words, at, y+42, 0, ink) + 22
	}
	c.fill(image.Rect(at, y+41, at+16, y+43), ink)
	c.write(c.small, "ahead in the candidate; none: behind", at+22, y+42, 0, ink)
	y += tokensTop
	for _, t := range texts {
		c.write(c.small, c.fit(c.small, t.Name+": "+t.Text, width-32), 16, y+10, 0, ink)
		c.tokenBars(t, y+tokensText)
		y += tokensText + gapHigh + klHigh + tokensGap
	}
}

func (c *canvas) tokenBars(t report.TokenPicture, y int) {
	left, right := pathsLeft, width-16
	x := func(i int) int { return left + i*(right-left)/max(len(t.Tokens), 1) }
	zero, noise := y+gapHigh, y+gapHigh-int(math.Round(report.NoiseAt*gapHigh))
	c.write(c.small, "× noise", left-10, y+8, 1, ink)
	c.write(c.small, "1", left-10, noise, 1, ink)
	c.write(c.small, "KL", left-10, zero+klHigh-8, 1, ink)
	for i, b := range t.Tokens {
		from, to := x(i), max(x(i+1)-1, x(i)+1)
		if !math.IsNaN(b.Gap) {
			c.fill(image.Rect(from, zero-max(int(math.Round(b.Gap*gapHigh)), 1), to, zero), choiceColor(b.Choice))
		} else {
			c.fill(image.Rect(from, zero-2, to, zero), choiceColor(b.Choice))
		}
		if !math.IsNaN(b.OwnGap) && !b.Behind {
			at := zero - int(math.Round(b.OwnGap*gapHigh))
			c.fill(image.Rect(from, at-1, to, at+1), ink)
		}
		if !math.IsNaN(b.KL) {
			c.fill(image.Rect(from, zero+klHigh-int(math.Round(b.KL*(klHigh-6))), to, zero+klHigh), soft)
		}
	}
	c.fill(image.Rect(left, noise, right, noise+1), mark)
	c.fill(image.Rect(left, zero, right, zero+1), soft)
	for i := 0; i < len(t.Tokens); i += step(max(len(t.Tokens), 1), maxTicks) {
		c.write(c.small, fmt.Sprint(i), x(i), zero+klHigh+12, 0, ink)
	}
}

func choiceColor(name string) color.RGBA {
	for _, k := range choices {
		if k.name == name {
			return k.color
		}
	}
	return soft
}
