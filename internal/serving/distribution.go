package serving

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// share is what a token has of the probability, among those that may be drawn.
type share struct {
	id int
	p  float64
}

// distribution is what tokens may be drawn, the largest first, and what is left for all others; 0: none may.
type distribution struct {
	shares []share
	rest   float64
}

func (d distribution) entropy() (h float64) {
	for _, x := range d.shares {
		if x.p > 0 {
			h -= x.p * math.Log(x.p)
		}
	}
	return h
}

// drawable reports whether a token can be chosen: those that the tokenizer does not have cannot.
func (m *Model) drawable(id int) bool {
	_, ok := m.token(id)
	return ok || m.Vocab == nil
}

// distribution is that of a row at a temperature, of the tokens that are known and can be drawn, with their logits
// changed. All others are as they were at temperature 1; at a lower one they are at most what is taken for them.
func (m *Model) distribution(row Row, temperature float64, change func(x float64, id int) float64) (d distribution) {
	others, least := 1.0, math.Inf(1)
	for id, x := range row.Known() {
		if row.Whole() && !m.drawable(id) {
			continue
		}
		others, least = others-math.Exp(x-row.LSE), min(least, x)
		if change != nil {
			x = change(x, id)
		}
		d.shares = append(d.shares, share{id, x / temperature})
	}
	if len(d.shares) == 0 {
		return distribution{rest: 1}
	}
	slices.SortStableFunc(d.shares, func(a, b share) int { return cmp.Compare(b.p, a.p) })
	logits := []float64{math.Inf(-1)} // of all others
	if !row.Whole() && others > 0 {
		logits[0] = row.LSE + math.Log(others) + least*(1/temperature-1)
	}
	for _, x := range d.shares {
		logits = append(logits, x.p)
	}
	all := floats.LogSumExp(logits)
	d.rest = math.Exp(logits[0] - all)
	for i := range d.shares {
		d.shares[i].p = math.Exp(d.shares[i].p - all)
	}
	return d
}

// byID are the shares of the tokens that are known.
func (d distribution) byID() map[int]float64 {
	p := map[int]float64{}
	for _, x := range d.shares {
		p[x.id] = x.p
	}
	return p
}

// behind is what remains of a distribution after tokens that come so often: all else is another text.
func (d distribution) behind(reach float64) (out distribution) {
	for _, x := range d.shares {
		out.shares = append(out.shares, share{x.id, reach * x.p})
	}
	out.rest = 1 - reach + reach*d.rest
	return out
}

// first is the distribution of its first tokens alone.
func (d distribution) first(n int) distribution {
	out := distribution{shares: d.shares[:n]}.behind(1 / d.mass(n))
	out.rest = 0
	return out
}

// mass is the probability of the first tokens.
func (d distribution) mass(n int) (sum float64) {
	for _, x := range d.shares[:n] {
		sum += x.p
	}
	return sum
}
