package generation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Choice is how a position was decided.
type Choice string

// The choices, from the best to the worst.
const (
	Same     Choice = "same"     // the candidate's largest logit is that of the reference's token
	Tie      Choice = "tie"      // another one is, as it may: see [Decide]
	Diverged Choice = "diverged" // another one is
)

// Position is what two sides say at one position.
type Position struct {
	Reference, Candidate int // the token with the largest logit
	Choice               Choice
	// Said is what the candidate's engine says that it chose, where its own logits have another token
	// ahead by more than the noise; −1 where that is not so.
	Said int

	// Gap is by how much the reference's logit of its token exceeds that of the other, and CandidateGap by
	// how much the candidate's does: the other is the candidate's token, or else the reference's second.
	// They are in units of Noise. NaN where a logit is not known.
	Gap, CandidateGap float64
	Noise             float64 // in nats: by how much the difference of these two logits may err

	KL    float64 // Σ p·ln(p/q) over the kept logits and a rest, in nats
	Rank  int     // how many of the candidate's logits are larger than that of the reference's token
	Error float64 // ‖a − g‖/‖g‖ of the logits less their means; +Inf where one is not finite on one side
	// LogProb and CandidateLogProb are the log-probabilities of the reference's token.
	LogProb, CandidateLogProb float64

	Outliers []int // tokens whose logits alone are off: see [Compare]
	Hidden   float64
	Bad      int  // logits of the candidate that are NaN or +Inf
	Flat     bool // the reference's first two logits are within the noise
}

// Decide says how the candidate decided a position, of which reference is the golden's token and
// candidate its own. It is a tie if the golden's gap between the two is within the noise of their
// difference, and the candidate's gap differs from it by no more than that. A token whose logit is not
// known is no tie.
func Decide(golden, actual Row, reference, candidate int, d tensor.DType) Choice {
	if reference == candidate {
		return Same
	}
	if gap, own, noise := gaps(golden, actual, reference, candidate, d); WithinNoise(gap, own, noise) {
		return Tie
	}
	return Diverged
}

// gaps are by how much the logit of one token exceeds that of another, on both sides, and by how much
// that may err; NaN where a logit is hidden or not known.
func gaps(golden, actual Row, one, other int, d tensor.DType) (gap, own, noise float64) {
	g1, _ := golden.Logit(one)
	g2, _ := golden.Logit(other)
	a1, _ := actual.Logit(one)
	a2, _ := actual.Logit(other)
	noise = golden.Noise(d, g1, g2)
	if !(finite(g1) && finite(g2) && finite(a1) && finite(a2)) {
		return math.NaN(), math.NaN(), noise
	}
	return g1 - g2, a1 - a2, noise
}

// Compare compares the rows of one position, of runs that were asked to compute in d. reference is the
// golden's token, and said what the candidate's engine says that it chose, −1 where it does not.
//
// Adding a number to all logits changes no probability, so they are compared less their means.
// Where single logits are off by more than the noise and 12 times the error of the others, they are
// outliers: no rounding does that.
func Compare(golden, actual Row, reference, said int, d tensor.DType) Position {
	p := Position{Reference: reference, Said: -1, Candidate: -1, Bad: actual.bad, Error: math.Inf(1), KL: math.Inf(1),
		Rank: actual.rank(reference), LogProb: golden.LogProb(reference), CandidateLogProb: actual.LogProb(reference)}
	if len(golden.Top) > 1 {
		p.Flat = golden.Gap() <= golden.Noise(d, golden.Top[0].Value, golden.Top[1].Value)
	}
	if !actual.decides() {
		p.Choice, p.Gap, p.CandidateGap = Diverged, math.NaN(), math.NaN()
		return p
	}
	p.Candidate = actual.Top[0].Token
	if x, ok := actual.Logit(reference); ok && x == actual.Top[0].Value {
		p.Candidate = reference // the first of equal ones is no other choice
	}
	p.Choice = Decide(golden, actual, reference, p.Candidate, d)
	if actual.Constant() && !golden.Constant() {
		p.Choice = Diverged
	}
	p.say(golden, actual, said, d)
	p.measure(golden, actual, d)
	p.KL = divergence(golden, actual)
	return p
}

// say takes what the engine says that it chose for the candidate's choice, unless the candidate's own
// logits contradict it.
func (p *Position) say(golden, actual Row, said int, d tensor.DType) {
	if said >= 0 && said != p.Candidate {
		x, ok := actual.Logit(said)
		if first := actual.Top[0].Value; ok && first-x <= actual.Noise(d, first, x) {
			c, worst := Decide(golden, actual, p.Reference, said, d), []Choice{Diverged, Tie, Same}
			if slices.Index(worst, c) < slices.Index(worst, p.Choice) {
				p.Candidate, p.Choice = said, c
			}
		} else {
			p.Said, p.Choice = said, Diverged
		}
	}
	other := p.Candidate
	if other == p.Reference {
		other = golden.second(p.Reference)
	}
	p.Gap, p.CandidateGap, p.Noise = gaps(golden, actual, p.Reference, other, d)
	if p.Noise > 0 {
		p.Gap, p.CandidateGap = p.Gap/p.Noise, p.CandidateGap/p.Noise
	}
}

// second is the largest token but one; −1 if there is none.
func (r Row) second(than int) int {
	for _, l := range r.Top {
		if l.Token != than {
			return l.Token
		}
	}
	return -1
}

// off are the logits that both sides know, and how far they are off.
type off struct {
	tokens         []int
	golden, errors []float64
}

// measure sets the error of the row, and what is off by itself.
func (p *Position) measure(golden, actual Row, d tensor.DType) {
	var o off
	for token, g := range golden.Known() {
		a, ok := actual.Logit(token)
		switch {
		case !ok && !actual.Whole() || !finite(g):
		case !ok || !finite(a):
			p.Hidden += math.Exp(g - golden.LSE)
		default:
			o.tokens, o.golden, o.errors = append(o.tokens, token), append(o.golden, g), append(o.errors, a-g)
		}
	}
	if o.tokens == nil {
		return
	}
	n := float64(len(o.tokens))
	mean, shift := floats.Sum(o.golden)/n, floats.Sum(o.errors)/n
	if n < few { // too few for a mean: log-probabilities
		mean, shift = golden.LSE, actual.LSE-golden.LSE
	}
	floats.AddConst(-shift, o.errors)
	ee, gg := floats.Dot(o.errors, o.errors), 0.0
	for _, g := range o.golden {
		gg += (g - mean) * (g - mean)
	}
	if gg = max(gg, n*golden.Spread*golden.Spread); gg > 0 {
		p.Error = math.Sqrt(ee / gg)
	} else if ee == 0 {
		p.Error = 0
	}
	p.outliers(golden, o, mean, ee, d)
}

// outliers finds the logits that are off by themselves; all of them are off by squares. Roundings on the way to a logit
// are a part of it, so one that is far from the mean may be off by more.
func (p *Position) outliers(golden Row, o off, mean, squares float64, d tensor.DType) {
	n := min(apart, len(o.tokens)/4)
	size := func(i int) float64 { return math.Abs(o.errors[i]) }
	var first []int // furthest off
	for i := range o.tokens {
		first = keepLargest(first, i, n, size)
	}
	for _, i := range first {
		squares -= size(i) * size(i)
	}
	rest := math.Sqrt(max(squares, 0) / float64(max(len(o.tokens)-n, 1)))
	for _, i := range first {
		g, e := o.golden[i], size(i)
		if e > outlier*rest*max(1, math.Abs(g-mean)/golden.Spread) && e > golden.Noise(d, g, g+o.errors[i]) {
			p.Outliers = append(p.Outliers, o.tokens[i])
		}
	}
	slices.Sort(p.Outliers)
}

// divergence is Σ p·ln(p/q) over the tokens that both sides know, of those that the golden keeps, and a
// rest that stands for all others.
func divergence(golden, actual Row) float64 {
	var kl, restP, restQ = 0.0, 1.0, 1.0
	add := func(p, q float64) {
		if p > 0 { // +Inf where q is 0
			kl += p * math.Log(p/q)
		}
	}
	for _, l := range golden.Top {
		if a, ok := actual.Logit(l.Token); ok {
			p, q := math.Exp(l.Value-golden.LSE), math.Exp(a-actual.LSE)
			restP, restQ = restP-p, restQ-q
			add(p, q)
		}
	}
	if least := 1e-12; restP > least && restQ > least { // else it is rounding of the sums
		add(restP, restQ)
	}
	return max(kl, 0)
}

// Positions compares the largest logits of each row of two tensors of one shape, on all cores. A position is
// nil where the golden's row decides nothing.
func Positions(golden, actual *tensor.Tensor, d tensor.DType) []*Position {
	n := golden.RowLen()
	rows := golden.Len() / n
	positions := make([]*Position, rows)
	parts := min(rows, rowParts)
	vec.Each(context.Background(), parts, func(part int) error {
		g, a := make([]float64, n), make([]float64, n)
		for row := part; row < rows; row += parts {
			golden.Float64s(g, row*n)
			actual.Float64s(a, row*n)
			positions[row] = position(g, a, d)
		}
		return nil
	})
	return positions
}

// position compares two rows of logits; nil where the golden's decides nothing. Most rows have the same
// largest logit and no error that stands out, which one look shows: of n logits of which four alone are
// off, these have √n/2 times the error of the row, and of infinite ones it is no number.
func position(g, a []float64, d tensor.DType) *Position {
	if isLevel(g) {
		return nil
	}
	var sum, squares, most float64
	top, own, n := 0, 0, float64(len(g))
	for i, x := range g {
		e := a[i] - x
		sum, squares, most = sum+e, squares+e*e, max(most, math.Abs(e))
		if x > g[top] {
			top = i
		}
		if a[i] > a[own] {
			own = i
		}
	}
	spread := math.Sqrt(max(squares/n-sum/n*sum/n, 0))
	if top == own && !isLevel(a) && most+math.Abs(sum/n) <= min(standsOut, math.Sqrt(n)/2.2)*spread {
		return &Position{Choice: Same, Reference: top, Candidate: top, Said: -1}
	}
	golden := NewRow(g)
	if !golden.decides() {
		return nil
	}
	pos := Compare(golden, NewRow(a), golden.Top[0].Token, -1, d)
	return &pos
}

// isLevel reports whether all of several numbers are equal: none of them is the largest.
func isLevel(x []float64) bool {
	return len(x) > 1 && !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

// Ahead says in words by how much the reference's token is ahead of the candidate's.
func (p *Position) Ahead() string {
	switch {
	case math.IsNaN(p.Gap):
		return "and the candidate's logits are not finite"
	case p.Choice == Tie:
		return fmt.Sprintf("ahead by %.2g of the noise: a tie", p.Gap)
	}
	return fmt.Sprintf("ahead by %.3g times the noise", p.Gap)
}

// Surest returns the largest probability of all rows of logits; 1 where a row has none.
func Surest(logits *tensor.Tensor) (most float64) {
	n := logits.RowLen()
	for i := range logits.Len() / n {
		r := NewRow(vec.Read(logits, n, []int{i}))
		if !r.decides() {
			return 1
		}
		most = max(most, math.Exp(r.LogProb(r.Top[0].Token)))
	}
	return most
}

// Last returns the largest logit of the last row, and its probability.
func Last(logits *tensor.Tensor) (token int, probability float64, err error) {
	n := logits.RowLen()
	r := NewRow(vec.Read(logits, n, []int{logits.Len()/n - 1}))
	switch {
	case !r.decides():
		return 0, 0, fmt.Errorf("are not finite")
	case r.Constant():
		return 0, 0, fmt.Errorf("are all %.4g: none is the largest", r.Top[0].Value)
	}
	return r.Top[0].Token, math.Exp(r.LogProb(r.Top[0].Token)), nil
}
