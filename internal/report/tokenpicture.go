package report

import (
	"fmt"
	"math"
)

// TokenPicture is what a picture of a generation shows: for each token, by how much the reference's is
// ahead in both runs, and how far the two distributions are apart.
type TokenPicture struct {
	Name   string // the case
	Text   string // the verdict
	Tokens []TokenBar
}

// TokenBar is one token in a picture. The heights are from 0 to 1, on logarithmic scales: gaps from a
// hundredth of the noise, 0, over the noise itself, a quarter, to a million times it; KL from 1e-12 to 10
// nats. NaN is what is not known.
type TokenBar struct {
	Choice      string // "same", "tie" or "diverged"
	Gap, OwnGap float64
	KL          float64
	Behind      bool // in the candidate the reference's token is not ahead
	Title       string
}

// NoiseAt is where a gap that is the noise ends.
const NoiseAt = 0.25

// NewTokenPictures makes the pictures of a report, of some texts if there are many.
func NewTokenPictures(r *Report) (out []TokenPicture) {
	for i := range r.Generations[:min(len(r.Generations), maxTexts)] {
		g := &r.Generations[i]
		p := TokenPicture{Name: Clean(g.Case), Text: Clean(g.Text)}
		from := g.picturedFrom()
		to := min(len(g.Positions), from+maxBins)
		if to-from < len(g.Positions) {
			p.Text += fmt.Sprintf(" (the picture has tokens %d to %d)", from, to-1)
		}
		for k, t := range g.Positions[from:to] {
			k += from
			p.Tokens = append(p.Tokens, TokenBar{Choice: t.Choice, Gap: gapHeight(float64(t.Gap)), OwnGap: gapHeight(math.Abs(float64(t.OwnGap))),
				KL: share(float64(t.KL), -12, 1), Behind: t.OwnGap < 0,
				Title: fmt.Sprintf("token %d: %d, candidate %d, ahead by %s × the noise, in the candidate %s; KL %s", k, t.Reference, t.Candidate,
					num(t.Gap), num(t.OwnGap), num(t.KL))})
		}
		out = append(out, p)
	}
	return out
}

// picturedFrom is the first token in a picture, which has what the verdict is about.
func (g *Generation) picturedFrom() int {
	if g.At == nil {
		return 0
	}
	return max(min(*g.At-maxBins/4, len(g.Positions)-maxBins), 0)
}

// gapHeight is a quarter for the noise.
func gapHeight(gap float64) float64 { return share(gap, -2, 6) }

// share is where a number lies between two powers of ten.
func share(x, from, to float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	return min(max((math.Log10(max(x, math.SmallestNonzeroFloat64))-from)/(to-from), 0), 1)
}
