package serving

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/report"
)

// Causes that a server's own log-probabilities show.

// figures: the log-probabilities are a known function of the right ones.
func (d *prober) figures(q *request) *report.Cause {
	a := &q.answer
	unnamed := a.Tokens == nil && !slices.Contains(q.j.Judged, "text")
	switch {
	case q.j.fault != others && q.j.fault != logProbs && !(q.j.fault == tokens && unnamed):
		return nil
	case q.j.fault == others, len(a.LogProbs) < len(a.Tokens)-1:
		return q.proven(causeLogProbs, "%s", q.j.Text)
	}
	n := min(len(a.LogProbs), len(q.ref.Rows), len(q.ref.Tokens))
	text, enough := explain(q.ref.first(n), a)
	if text == "" {
		return nil
	}
	f := q.proven(causeLogProbs, "the log-probabilities are %s", text)
	f.Proven = n >= enough
	return f
}

// swapped: the log-probability is that of the reference's token, the token is another.
func (d *prober) swapped(q *request) *report.Cause {
	a, k := &q.answer, q.j.at
	if q.j.fault != tokens || k >= min(len(a.LogProbs), len(q.ref.Rows)) {
		return nil
	}
	row, noise := q.ref.Rows[k], q.ref.noise(k, a)
	right, _ := row.LogProb(q.ref.Tokens[k])
	another := slices.Contains(q.j.Judged, "text") // it shows that the token is another
	if a.Tokens != nil {
		own, known := row.LogProb(a.Tokens[k])
		another = !known || !near(a.LogProbs[k], own, noise)
	}
	if another && near(a.LogProbs[k], right, noise) {
		return q.proven(causeChoice, "token %d is another with the log-probability %.5g, which is that of %s: what was chosen is right, what it is called is not",
			k, a.LogProbs[k], d.Model.name(q.ref.Tokens[k]))
	}
	return nil
}

// explain says what the log-probabilities of a reference's tokens are, and from how many of them on that is sure.
func explain(ref *Reference, a *Answer) (text string, enough int) {
	n := len(ref.Rows)
	if n == 0 {
		return "", 0
	}
	want := func(k int) float64 { // the right one of token k; NaN where there is none
		if k < 0 || k >= n {
			return math.NaN()
		}
		p, _ := ref.Rows[k].LogProb(ref.Tokens[k])
		return p
	}
	heated := func(k int, temperature float64) float64 { return ref.Rows[k].heated(ref.Tokens[k], temperature) }
	is := a.LogProbs[:n]
	offset, factor := is[0]-want(0), is[0]/want(0)
	heat := solve(func(temperature float64) float64 { return heated(0, temperature) }, is[0])
	for _, of := range []struct {
		text    string
		enough  int
		formula func(k int) float64
	}{
		{"those of the token after", 3, func(k int) float64 { return want(k + 1) }},
		{"those of the token before", 3, func(k int) float64 { return want(k - 1) }},
		{"probabilities, without the logarithm", 2, func(k int) float64 { return math.Exp(want(k)) }},
		{"logits, from which no log-sum-exp was taken", 2, func(k int) float64 { return want(k) + ref.Rows[k].All }},
		{fmt.Sprintf("shifted by %.4g", offset), 2, func(k int) float64 { return want(k) + offset }},
		// To base 2, 1.443 times; to base 10, 0.4343 times; with the other sign, −1 times.
		{fmt.Sprintf("%.4g times the right ones", factor), 2, func(k int) float64 { return want(k) * factor }},
		{fmt.Sprintf("those of a softmax at temperature %.3g", heat), 2, func(k int) float64 { return heated(k, heat) }},
	} {
		fits, compared := true, 0
		for k := range is {
			if p := of.formula(k); !math.IsNaN(is[k]) && !math.IsNaN(p) {
				compared++
				fits = fits && near(is[k], p, ref.noise(k, a))
			}
		}
		if fits && compared > 0 {
			return of.text, of.enough
		}
	}
	return "", 0
}

// heated is the log-probability of a token at a temperature; NaN where not all logits are known.
func (r Row) heated(id int, temperature float64) float64 {
	var row []float64
	for _, x := range r.Known() {
		row = append(row, x/temperature)
	}
	if !r.Whole() || id >= len(row) {
		return math.NaN()
	}
	return row[id] - floats.LogSumExp(row)
}

// solve is the temperature at which the best token has a log-probability, which rises as it falls; NaN if there is none.
func solve(heated func(temperature float64) float64, is float64) float64 {
	low, high := 0.05, 20.0
	if !(heated(high) < is && is < heated(low)) {
		return math.NaN()
	}
	for range 60 {
		if middle := math.Sqrt(low * high); heated(middle) > is {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}
