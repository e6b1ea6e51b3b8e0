package serving

import (
	"math"

	"github.com/goparity/goparity/internal/tie"
)

// Tied reports whether a candidate may choose a token where the reference chose another, its best: see
// [tie.Free]. candidate returns the logits (or log-probabilities) that the candidate told, if it did. NaN
// is never tied, nor a choice that golden does not know.
func Tied(golden Row, best, choice int, candidate func(id int) (logit float64, ok bool), noise float64) bool {
	gb, ok := golden.Logit(best)
	gc, known := golden.Logit(choice)
	if !ok || !known {
		return false
	}
	own := math.NaN()
	cb, ok := candidate(best)
	cc, known := candidate(choice)
	if ok && known {
		if own = cb - cc; math.IsNaN(own) {
			return false
		}
	}
	return tie.Free(gb-gc, own, noise)
}
