package export

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/internal/report"
)

// textChart is a generation as the template draws it, ten units for each token: by how much the reference's token is
// ahead in both runs above 100, and how far the two distributions are apart, KL, between 104 and 154. Scales are
// logarithmic: gaps from a hundredth of the noise over the noise itself, at 75, to a million times it; KL from 1e-12
// to 10 nats.
type textChart struct {
	Name, Text string
	Width      int
	Bars       []tokenBar
}

type tokenBar struct {
	X, GapY, GapHeight, OwnY, KLY, KLHeight int
	Own                                     bool // in the candidate the reference's token is ahead
	Fill, Title                             string
}

// fills are the colours of what the candidate chose.
var fills = map[string]string{"same": "#6f9fc8", "tie": "#e69f00", "diverged": "#a01020"}

func textCharts(r *report.Report) (out []textChart) {
	for i := range r.Generations[:min(len(r.Generations), maxTexts)] {
		g := &r.Generations[i]
		from := 0
		if g.At != nil { // what the verdict is about is in the picture
			from = max(min(*g.At-maxTokens/4, len(g.Positions)-maxTokens), 0)
		}
		shown := g.Positions[from:min(len(g.Positions), from+maxTokens)]
		c := textChart{Name: text(g.Case), Text: text(g.Text), Width: max(10*len(shown), 10)}
		if len(shown) < len(g.Positions) {
			c.Text += fmt.Sprintf(" (the picture has tokens %d to %d)", from, from+len(shown)-1)
		}
		for k, t := range shown {
			gap, kl := high(float64(t.Gap), -2, 6, 100), high(float64(t.KL), -12, 1, 50)
			b := tokenBar{X: 10 * k, GapY: 100 - gap, GapHeight: gap, KLY: 154 - kl, KLHeight: kl, Fill: fills[t.Choice],
				Title: text(fmt.Sprintf("token %d: %s", from+k, t.String()))}
			if own := math.Abs(float64(t.OwnGap)); !math.IsNaN(own) && t.OwnGap >= 0 {
				b.Own, b.OwnY = true, 99-high(own, -2, 6, 98)
			}
			c.Bars = append(c.Bars, b)
		}
		out = append(out, c)
	}
	return out
}

// high is where a number lies between two powers of ten, as a part of a height; at least 1.
func high(x, from, to float64, of int) int {
	if math.IsNaN(x) {
		return 1
	}
	share := (math.Log10(max(x, math.SmallestNonzeroFloat64)) - from) / (to - from)
	return max(int(math.Round(min(max(share, 0), 1)*float64(of))), 1)
}
