package page

import (
	"math"

	"github.com/goparity/goparity/internal/report"
)

// textChart is a generation as the template draws it: ten units for each token, gaps above 100, KL
// between 104 and 154.
type textChart struct {
	Name, Text string
	Width      int
	Bars       []tokenBar
}

type tokenBar struct {
	X, GapY, GapHeight, OwnY, KLY, KLHeight int
	Own                                     bool
	Fill, Title                             string
}

// fills are the colours of what the candidate chose.
var fills = map[string]string{"same": "#6f9fc8", "tie": "#e69f00", "diverged": "#a01020"}

func textCharts(r *report.Report) (out []textChart) {
	for _, p := range report.NewTokenPictures(r) {
		c := textChart{Name: text(p.Name), Text: text(p.Text), Width: max(10*len(p.Tokens), 10)}
		for i, t := range p.Tokens {
			gap, kl := high(t.Gap, 100), high(t.KL, 50)
			b := tokenBar{X: 10 * i, GapY: 100 - gap, GapHeight: gap, KLY: 154 - kl, KLHeight: kl, Fill: fills[t.Choice], Title: text(t.Title)}
			if b.Own = !t.Behind && !math.IsNaN(t.OwnGap); b.Own {
				b.OwnY = 99 - high(t.OwnGap, 98)
			}
			c.Bars = append(c.Bars, b)
		}
		out = append(out, c)
	}
	return out
}

// high is a share of a height, at least 1 of what is known.
func high(share float64, of int) int {
	if math.IsNaN(share) {
		return 1
	}
	return max(int(math.Round(share*float64(of))), 1)
}
