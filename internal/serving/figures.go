package serving

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// figures: the log-probabilities are a known function of the right ones.
func (d *doctor) figures(q *request) *finding {
	a := &q.answer
	unnamed := a.Tokens == nil && !slices.Contains(q.j.judged, "text")
	if q.j.fault == others {
		return proven(causeLogProbs, "%s: %s", q.where(), q.j.what)
	}
	if q.j.fault != logProbs && !(q.j.fault == tokens && unnamed) {
		return nil
	}
	if len(a.LogProbs) < len(a.Tokens)-1 {
		return proven(causeLogProbs, "%s: %s", q.where(), q.j.what)
	}
	s := series{is: a.LogProbs, rounding: a.Rounding, rows: q.ref.Rows, ids: q.ref.Tokens}
	if n := min(len(s.is), len(s.rows), len(s.ids)); n > 0 {
		s.is, s.rows, s.ids = s.is[:n], s.rows[:n], s.ids[:n]
		if text, sure := s.explain(); text != "" {
			f := guess(causeLogProbs, "%s: the log-probabilities are %s", q.where(), text)
			f.proven = sure
			return f
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

func (s *series) want(k int) float64 {
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

// explain says what the values are, and whether more than one of them speaks for it.
func (s *series) explain() (text string, sure bool) {
	several := len(s.is) > 1
	for _, by := range []int{1, -1} {
		if len(s.is) < 2 {
			break
		}
		shifted := func(k int) float64 {
			if k+by < 0 || k+by >= len(s.is) {
				return math.NaN()
			}
			return s.want(k + by)
		}
		if s.fits(shifted) {
			return map[int]string{1: "those of the token behind", -1: "those of the token before"}[by], len(s.is) > 2
		}
	}
	offset, factor := s.is[0]-s.want(0), s.is[0]/s.want(0)
	switch {
	case s.fits(func(k int) float64 { return math.Exp(s.want(k)) }):
		return "probabilities, without the logarithm", several
	case s.fits(func(k int) float64 { return s.want(k) / math.Ln2 }):
		return "logarithms to base 2", several
	case s.fits(func(k int) float64 { return s.want(k) / math.Ln10 }):
		return "logarithms to base 10", several
	case s.fits(func(k int) float64 { return -s.want(k) }):
		return "those of the reference with the other sign", several
	case s.fits(func(k int) float64 { x, _ := s.rows[k].Logit(s.ids[k]); return x }):
		return "logits, from which no log-sum-exp was taken", several
	case s.fits(func(k int) float64 { return s.want(k) + offset }):
		return fmt.Sprintf("shifted by %.4g", offset), several
	case s.fits(func(k int) float64 { return s.want(k) * factor }):
		return fmt.Sprintf("%.4g times the right ones", factor), several
	}
	if t := s.temperature(); t > 0 && s.fits(func(k int) float64 { return s.at(k, t) }) {
		return fmt.Sprintf("those of a softmax at temperature %.3g", t), several
	}
	is, want := slices.Clone(s.is), make([]float64, len(s.is))
	for k := range want {
		want[k] = s.want(k)
	}
	slices.Sort(is)
	slices.Sort(want)
	if several && slices.EqualFunc(is, want, func(a, b float64) bool { return near(a, b, s.rows[0].shift+s.rounding) }) {
		return "the right ones in another order", len(is) > 2
	}
	return "", false
}

// at is the log-probability of token k at a temperature.
func (s *series) at(k int, temperature float64) float64 {
	var row []float64
	for x, ok := s.rows[k].Logit(0); ok; x, ok = s.rows[k].Logit(len(row)) {
		row = append(row, x/temperature)
	}
	return row[s.ids[k]] - floats.LogSumExp(row)
}

// temperature is the one at which the first token has its log-probability, 0 if there is none: the
// best token's rises as the temperature falls. All logits have to be known.
func (s *series) temperature() float64 {
	low, high := 0.05, 20.0
	if !s.rows[0].Whole() || !(s.at(0, high) < s.is[0] && s.is[0] < s.at(0, low)) {
		return 0
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
