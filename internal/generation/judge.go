// Package generation judges the tokens that a model generates, by logits that are at hand: those of the
// reference and those of a candidate that was forced along the reference's greedy text, position by
// position. It runs no engine and opens no file.
//
// [Decide] is the rule for one token: the same, a tie within the noise, or diverged. [Compare] says what
// two rows of logits say at one position, and [Judge] what all positions come to.
package generation

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// Verdict is what all positions come to.
type Verdict string

// The verdicts. Those above Uninformative decide about the tokens.
const (
	Identical     Verdict = "identical" // every token is the reference's
	Ties          Verdict = "tie"       // some are others, each of them a tie
	Divergent     Verdict = "diverged"  // a token is another one, and no tie
	Logits        Verdict = "logits"    // the tokens are right, the logits are not
	Uninformative Verdict = "too flat"  // the golden decides too few of its tokens
)

// Result is what the positions of a generation come to.
type Result struct {
	Verdict   Verdict
	At        int // the first position that diverged, or whose logits fail, or a tie; −1 if there is none
	Positions []Position

	Agree, Ties int     // positions with the reference's token, and with a tie
	Flat        float64 // the part of the positions that lie within the noise
	// Perplexity is exp of the mean of −log p of the reference's tokens, of the reference and of the
	// candidate.
	Perplexity [2]float64
	KL         float64 // of the worst position
	RelL2      float64 // of the logits of all positions less their means
	Worst      int     // the position with the largest error
	// Growth is the median error of the last third of the positions over that of the first; NaN where
	// these are too few. Grows says that it grew steadily, and out of the noise.
	Growth float64
	Grows  bool
	Limits compare.Limits // of the logits
}

// Fails reports whether the candidate is wrong.
func (r *Result) Fails() bool { return r.Verdict == Divergent || r.Verdict == Logits }

// Judge judges the positions of a generation, at least one, of runs that were asked to compute in d.
// Their logits may be off as far as limits say: relative L2, less the mean of each row, of all and of
// the worst one.
func Judge(positions []Position, d tensor.DType, limits compare.Limits) Result {
	r := Result{Positions: positions, At: -1, Limits: limits}
	var logProb, candidate, flats float64
	var errors []float64
	at := map[Choice][]int{}
	decided := true // every position that the golden decides has its token
	for k, p := range positions {
		at[p.Choice], errors = append(at[p.Choice], k), append(errors, p.Error)
		if p.Flat {
			flats++
		}
		decided = decided && (p.Flat || p.Choice == Same)
		logProb, candidate = logProb-p.LogProb, candidate-p.CandidateLogProb
		r.KL = max(r.KL, p.KL)
		if !(p.Error <= errors[r.Worst]) {
			r.Worst = k
		}
	}
	n := float64(len(positions))
	r.Agree, r.Ties, r.Flat = len(at[Same]), len(at[Tie]), flats/n
	r.Perplexity = [2]float64{math.Exp(logProb / n), math.Exp(candidate / n)}
	r.RelL2 = math.Sqrt(floats.Dot(errors, errors) / n)
	r.grow(errors, d)
	fails := slices.IndexFunc(positions, func(p Position) bool { return p.fails(limits) })
	if fails < 0 && (!(r.RelL2 <= limits.RelL2) || r.Grows) {
		fails = r.Worst
	}
	enough := r.Flat <= flat || r.Flat <= flatAgreeing && decided && at[Diverged] == nil
	switch {
	case !enough && fails < 0: // wrong logits are wrong however little they decide
		r.Verdict = Uninformative
	case at[Diverged] != nil:
		r.Verdict, r.At = Divergent, at[Diverged][0]
	case fails >= 0:
		r.Verdict, r.At = Logits, fails
	case at[Tie] != nil:
		r.Verdict, r.At = Ties, at[Tie][0]
	default:
		r.Verdict = Identical
	}
	return r
}

// fails reports whether the logits of a position are wrong by themselves.
func (p *Position) fails(limits compare.Limits) bool {
	return p.Bad > 0 || p.Hidden > hidden || len(p.Outliers) > 0 || !(p.Error <= limits.RowRelL2)
}

// grow tells whether the error grows with the position.
func (r *Result) grow(errors []float64, d tensor.DType) {
	r.Growth = math.NaN()
	n := len(errors)
	if n < fewPositions {
		return
	}
	from, to := median(errors[:n/3]), median(errors[n-n/3:])
	r.Growth = to / from
	if from == 0 && to == 0 {
		r.Growth = 1
	}
	r.Grows = r.Growth >= climbs && to > compare.Floor(d).RelL2 && correlation(errors) >= steady
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// correlation is that of the ranks of numbers with their places.
func correlation(x []float64) float64 {
	at := make([]int, len(x)) // the place of each rank
	floats.ArgsortStable(slices.Clone(x), at)
	ranks, places := make([]float64, len(x)), make([]float64, len(x))
	for rank, place := range at {
		ranks[rank], places[rank] = float64(rank), float64(place)
	}
	return stat.Correlation(ranks, places, nil)
}
