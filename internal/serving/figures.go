package serving

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Causes that a server's own log-probabilities show.

// figures: the log-probabilities are a known function of the right ones.
func (d *prober) figures(q *request) *finding {
	a := &q.answer
	unnamed := a.Tokens == nil && !slices.Contains(q.j.judged, "text")
	switch {
	case q.j.fault != others && q.j.fault != logProbs && !(q.j.fault == tokens && unnamed):
		return nil
	case q.j.fault == others, len(a.LogProbs) < len(a.Tokens)-1:
		return q.proven(causeLogProbs, "%s", q.j.what)
	}
	s := series{is: a.LogProbs, rounding: a.Rounding, rows: q.ref.Rows, ids: q.ref.Tokens}
	n := min(len(s.is), len(s.rows), len(s.ids))
	s.is, s.rows, s.ids = s.is[:n], s.rows[:n], s.ids[:n]
	text, enough := s.explain()
	if text == "" {
		return nil
	}
	f := q.proven(causeLogProbs, "the log-probabilities are %s", text)
	f.proven = n >= enough
	return f
}

// swapped: the log-probability is that of the reference's token, the token is another.
func (d *prober) swapped(q *request) *finding {
	a, k := &q.answer, q.j.at
	if q.j.fault != tokens || k >= min(len(a.LogProbs), len(q.ref.Rows)) {
		return nil
	}
	row, noise := q.ref.Rows[k], q.ref.noise(k, a)
	right, _ := row.LogProb(q.ref.Tokens[k])
	another := slices.Contains(q.j.judged, "text") // it shows that the token is another
	if a.Tokens != nil {
		own, known := row.LogProb(a.Tokens[k])
		another = !known || !near(a.LogProbs[k], own, noise)
	}
	if another && near(a.LogProbs[k], right, noise) {
		return q.proven(causeChoice, "token %d is another with the log-probability %.5g, which is that of %s: what was chosen is right, what it is called is not",
			k, a.LogProbs[k], d.model.name(q.ref.Tokens[k]))
	}
	return nil
}

// notItsBest: the server's own log-probabilities have another token first.
func (d *prober) notItsBest(q *request) *finding {
	a, k := &q.answer, q.j.at
	if q.j.fault != tokens || k >= min(len(a.Top), len(a.LogProbs), len(q.ref.Rows)) {
		return nil
	}
	for text, p := range a.Top[k] {
		if p > a.LogProbs[k]+q.ref.noise(k, a)+a.Rounding {
			return q.guess(causeSampling, "token %d has the log-probability %.5g, and by the server's own figures %s has %.5g: at temperature 0 it "+
				"would be chosen", k, a.LogProbs[k], quoted(text), p)
		}
	}
	return nil
}

// series are log-probabilities, and the rows that have the right ones.
type series struct {
	is       []float64
	rounding float64
	rows     []Row
	ids      []int
}

// want is the right one of token k; NaN where there is none.
func (s *series) want(k int) float64 {
	if k < 0 || k >= len(s.is) {
		return math.NaN()
	}
	p, _ := s.rows[k].LogProb(s.ids[k])
	return p
}

// fits reports whether all values are what a formula says, but for noise. NaN says nothing.
func (s *series) fits(formula func(k int) float64) bool {
	compared := 0
	for k, is := range s.is {
		want := formula(k)
		if math.IsNaN(is) || math.IsNaN(want) {
			continue
		}
		if compared++; !near(is, want, s.rows[k].shift+s.rounding) {
			return false
		}
	}
	return compared > 0
}

// explain says what the values are, and from how many of them on that is sure.
func (s *series) explain() (text string, enough int) {
	if len(s.is) == 0 {
		return "", 0
	}
	offset, factor, heat := s.is[0]-s.want(0), s.is[0]/s.want(0), s.temperature()
	for _, of := range []struct {
		text    string
		enough  int
		formula func(k int) float64
	}{
		{"those of the token after", 3, func(k int) float64 { return s.want(k + 1) }},
		{"those of the token before", 3, func(k int) float64 { return s.want(k - 1) }},
		{"probabilities, without the logarithm", 2, func(k int) float64 { return math.Exp(s.want(k)) }},
		{"logits, from which no log-sum-exp was taken", 2, func(k int) float64 { return s.want(k) + s.rows[k].All }},
		{fmt.Sprintf("shifted by %.4g", offset), 2, func(k int) float64 { return s.want(k) + offset }},
		// To base 2, 1.443 times; to base 10, 0.4343 times; with the other sign, −1 times.
		{fmt.Sprintf("%.4g times the right ones", factor), 2, func(k int) float64 { return s.want(k) * factor }},
		{fmt.Sprintf("those of a softmax at temperature %.3g", heat), 2, func(k int) float64 { return s.at(k, heat) }},
	} {
		if s.fits(of.formula) {
			return of.text, of.enough
		}
	}
	is, want := slices.Sorted(slices.Values(s.is)), []float64{}
	for k := range s.is {
		want = append(want, s.want(k))
	}
	slices.Sort(want)
	if len(is) > 1 && slices.EqualFunc(is, want, func(a, b float64) bool { return near(a, b, s.rows[0].shift+s.rounding) }) {
		return "the right ones in another order", 3
	}
	return "", 0
}

// at is the log-probability of token k at a temperature; NaN where not all logits are known.
func (s *series) at(k int, temperature float64) float64 {
	var row []float64
	for x, ok := s.rows[k].Logit(0); ok && s.rows[k].Whole(); x, ok = s.rows[k].Logit(len(row)) {
		row = append(row, x/temperature)
	}
	if s.ids[k] >= len(row) {
		return math.NaN()
	}
	return row[s.ids[k]] - floats.LogSumExp(row)
}

// temperature is the one at which the first token has its log-probability, NaN if there is none: the
// best token's rises as the temperature falls.
func (s *series) temperature() float64 {
	low, high := 0.05, 20.0
	if !(s.at(0, high) < s.is[0] && s.is[0] < s.at(0, low)) {
		return math.NaN()
	}
	for range 60 {
		if middle := math.Sqrt(low * high); s.at(0, middle) > s.is[0] {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}
