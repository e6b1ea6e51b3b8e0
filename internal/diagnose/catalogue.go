package diagnose

import "github.com/goparity/goparity/internal/localise"

// For lists the hypotheses of this package for a verdict's kind, the cheap and likely ones first. A kind that is a cause by itself has
// only those that say so with numbers: what looks like another one there follows from it.
func For(kind string) []Hypothesis {
	switch kind {
	case localise.KindInput:
		return []Hypothesis{Asked, Embedding}
	case localise.KindInteraction, kindDrift:
		return []Hypothesis{Whole}
	case kindCapture:
		return []Hypothesis{Elsewhere}
	}
	return []Hypothesis{Elsewhere, Values, NaN, Overflow, Dropout, NormOrder, Rebuilt, LastToken, Embedding, AddedTable, Layout, Downcast, Places}
}
