package diagnose

import (
	"cmp"
	"math"
	"slices"
)

// Cause is a judged prediction.
type Cause struct {
	ID, Layer, Text string
	Proven          bool
	Fit, FitGolden  float64 // relative L2 of the candidate against prediction and golden; Fit is NaN for a guess
	// Next is the id of the prediction that fits best of those with another one, and NextFit how well, of
	// the first cause if that is a prediction and not proven; else "".
	Next         string
	NextFit      float64
	params, rank int
	close        bool // fits far better than the golden
}

func (c Cause) isGuess() bool { return math.IsNaN(c.Fit) }

// The classes of causes, which come before their fits.
const (
	isProven = iota
	isClose  // fits far better than the golden
	isSure   // a guess that is sure of what it says
	isLoose  // fits better than the golden
	isGuess
)

func (c Cause) class() int {
	switch {
	case c.Proven:
		return isProven
	case c.isGuess() && c.rank < 0:
		return isSure
	case c.isGuess():
		return isGuess
	case c.close:
		return isClose
	}
	return isLoose
}

// rank puts the best first and leaves at most one proven cause: others that fit as well say the
// same with less. others are the predictions that fit too little to be shown.
func rank(causes, others []Cause, floor float64) (out []Cause) {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if c := cmp.Compare(a.class(), b.class()); c != 0 || !a.isGuess() {
			return cmp.Or(c, cmp.Compare(a.Fit, b.Fit))
		}
		return cmp.Compare(a.rank, b.rank)
	})
	if len(causes) > 0 && !causes[0].isGuess() {
		// Those that fit about as well as the best: fewest fitted numbers first.
		best := causes[0]
		limit := alike * max(best.Fit, floor*belowFloor)
		n := 1
		for n < len(causes) && causes[n].class() == best.class() && causes[n].Fit <= limit {
			n++
		}
		slices.SortStableFunc(causes[:n], func(a, b Cause) int {
			return cmp.Or(cmp.Compare(a.params, b.params), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Fit, b.Fit))
		})
	}
	others = append(slices.Clone(causes), others...)
	seen, loose := map[string]bool{}, 0
	for _, c := range decided(causes, others) {
		if len(out) == shown || len(out) > 0 && out[0].Proven && c.class() > isClose {
			break // no one needs guesses beside a proof
		}
		if seen[c.ID] || c.class() == isLoose && loose == shownLoose {
			continue
		}
		if c.class() == isLoose {
			loose++
		}
		seen[c.ID] = true
		c.Proven = c.Proven && len(out) == 0
		out = append(out, c)
	}
	if len(out) > 0 && !out[0].Proven && !out[0].isGuess() {
		if next := nextTo(out[0], others); next != nil {
			out[0].Next, out[0].NextFit = next.ID, next.Fit
		}
	}
	return out
}

// nextTo returns the best prediction of another id than a cause's; nil if there is none.
func nextTo(c Cause, others []Cause) (next *Cause) {
	for i, o := range others {
		if o.ID != c.ID && !o.isGuess() && (next == nil || o.Fit < next.Fit) {
			next = &others[i]
		}
	}
	return next
}

// decided leaves out causes that fit but loosely if the best of them is not clearly nearer than any
// other prediction: two that explain an error alike explain nothing.
func decided(causes, others []Cause) []Cause {
	isLoosely := func(c Cause) bool { return c.class() == isLoose }
	at := slices.IndexFunc(causes, isLoosely)
	if at < 0 {
		return causes
	}
	if next := nextTo(causes[at], others); next != nil && next.Fit < apart*causes[at].Fit {
		return slices.DeleteFunc(causes, isLoosely)
	}
	return causes
}
