package pattern

import (
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/text"
)

// cause is one kind of mistake, or several that are looked for together.
type cause struct {
	ids   []string // that it finds
	kinds []string // of verdicts in which it is looked for; nil for errors of a layer
	finds diagnose.Hypothesis
}

var capture, layer = localise.KindCapture, "" // "" is an error of a layer

// catalogue has all causes that wrong numbers show by themselves, in the order in which they are tried. docs/causes.md has a
// row for each.
var catalogue = []cause{
	{[]string{"input/tokens", "input/mask", "embedding/position", "embedding/type", "rope/offset", "image/normalise",
		"image/channels", "image/layout"}, []string{localise.KindInput}, asked},
	{[]string{"interaction"}, []string{localise.KindInteraction}, interaction},
	{[]string{"drift"}, []string{localise.KindDrift}, drift},
	{[]string{"capture/neighbour", "capture/normed"}, []string{capture}, neighbour},
	{[]string{"state/stale", "capture/same-file", "capture/wrong-tensor"}, []string{capture, layer}, elsewhere},

	{[]string{"residual/missing", "norm/missing", "activation/missing", "residual/scale"}, nil, skipped},
	{[]string{"value/constant", "value/sign", "value/scale", "value/offset", "embedding/scale", "embedding/type"}, nil, ofPair(values)},
	{[]string{"nan/first"}, nil, ofPair(nan)},
	{[]string{"dtype/overflow"}, nil, ofPair(overflow)},
	{[]string{"value/clipped"}, nil, ofPair(clipped)},
	{[]string{"dropout"}, nil, ofPair(dropout)},

	{[]string{"output/last-token"}, nil, lastToken},
	{[]string{"embedding/index", "embedding/position", "embedding/type"}, nil, ofPair(embedding)},
	{[]string{"embedding/position", "embedding/type", "rope/offset"}, []string{localise.KindInput, layer}, indices},
	{[]string{"layout/shifted", "layout/transposed", "layout/strided", "layout/permuted", "embedding/position", "linear/qkv-order",
		"linear/gate-up", "modulation/order"}, nil, layout},
	{[]string{"dtype/downcast"}, nil, ofPair(downcast)},
	{[]string{"rows/from", "rows/set", "columns/set", "head/one"}, nil, wrongPlaces},
}

// ofPair is what needs numbers on both sides.
func ofPair(find func(*pair) []diagnose.Prediction) diagnose.Hypothesis {
	return func(s *diagnose.Scene) []diagnose.Prediction {
		if p := of(s); p != nil {
			return find(p)
		}
		return nil
	}
}

// For lists the hypotheses for a verdict's kind, the cheap and likely ones first. A kind that is a
// cause by itself has only those that say so with numbers: what looks like another one there
// follows from it.
func For(kind string) (out []diagnose.Hypothesis) {
	byItself := []string{localise.KindInput, localise.KindInteraction, localise.KindDrift, localise.KindCapture}
	if !slices.Contains(byItself, kind) {
		kind = layer
	}
	for _, c := range catalogue {
		if c.kinds == nil && kind == layer || slices.Contains(c.kinds, kind) {
			out = append(out, c.finds)
		}
	}
	return out
}

// IDs lists the ids of all causes.
func IDs() []string {
	// The first is found by what judges the runs of one prompt, internal/judge; text needs no tensors.
	ids := append([]string{"state/nondeterministic"}, text.IDs()...)
	for _, c := range catalogue {
		ids = append(ids, c.ids...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
