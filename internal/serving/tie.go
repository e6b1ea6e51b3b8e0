package serving

import "math"

// Tied reports whether a candidate may choose a token where the reference chose another, its best:
// the reference's own gap between the two is at most the noise, and the candidate's gap, where
// candidate knows the logits (or log-probabilities) of both, differs from it by no more than that.
//
//	0 ≤ g(best) − g(choice) ≤ noise  and  |(c(best) − c(choice)) − (g(best) − g(choice))| ≤ noise
//
// NaN is never tied. A choice that golden does not know is none.
func Tied(golden Row, best, choice int, candidate func(id int) (logit float64, ok bool), noise float64) bool {
	gb, ok := golden.Logit(best)
	gc, known := golden.Logit(choice)
	gap := gb - gc
	if !ok || !known || !(math.Abs(gap) <= noise) {
		return false
	}
	cb, ok := candidate(best)
	cc, known := candidate(choice)
	return !ok || !known || math.Abs(cb-cc-gap) <= noise
}
