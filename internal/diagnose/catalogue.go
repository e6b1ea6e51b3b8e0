package diagnose

import (
	"slices"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/text"
)

// cause is one kind of mistake, or several that are looked for together.
type cause struct {
	ids     []string // that it finds
	kinds   []string // of verdicts in which it is looked for; nil for errors of a layer
	numbers bool     // it needs floats on both sides
	finds   hypothesis
}

const layer = "" // an error of a layer

// catalogue has all causes that wrong numbers show by themselves, in the order in which they are tried: the cheap
// and likely ones first. docs/causes.md has a row for each.
var catalogue = []cause{
	{[]string{"input/tokens", "input/mask", "embedding/position", "embedding/type", "rope/offset", "image/normalise",
		"image/channels", "image/layout"}, []string{localise.KindInput, layer}, false, asked},
	{[]string{"interaction"}, []string{localise.KindInteraction}, false, interaction},
	{[]string{"drift"}, []string{localise.KindDrift}, false, drift},
	{[]string{"capture/neighbour", "capture/normed"}, []string{localise.KindCapture}, true, neighbour},
	{[]string{"state/stale", "capture/same-file", "capture/wrong-tensor"}, []string{localise.KindCapture, layer}, true, elsewhere},

	{[]string{"residual/missing", "norm/missing", "activation/missing", "residual/scale"}, nil, true, skipped},
	{[]string{"value/constant", "value/sign", "value/scale", "value/offset", "embedding/scale", "embedding/type"}, nil, true, values},
	{[]string{"nan/first"}, nil, true, nan},
	{[]string{"dtype/overflow"}, nil, true, overflow},
	{[]string{"value/clipped"}, nil, true, clipped},
	{[]string{"dropout"}, nil, true, dropout},

	{[]string{"output/last-token"}, nil, true, lastToken},
	{[]string{"embedding/index", "embedding/position", "embedding/type"}, nil, true, embedding},
	{[]string{"layout/shifted", "layout/transposed", "layout/strided", "layout/permuted", "embedding/position", "linear/qkv-order",
		"linear/gate-up", "modulation/order"}, nil, true, layout},
	{[]string{"dtype/downcast"}, nil, true, downcast},
	{[]string{"rows/from", "rows/set", "columns/set", "head/one"}, nil, true, wrongPlaces},
}

// hypotheses lists those for a scene. A kind that is a cause by itself has only those that say so with numbers:
// what looks like another one there follows from it.
func hypotheses(s *Scene) (out []hypothesis) {
	kind := s.Kind
	if !slices.Contains([]string{localise.KindInput, localise.KindInteraction, localise.KindDrift, localise.KindCapture}, kind) {
		kind = layer
	}
	for _, c := range catalogue {
		if (c.kinds == nil && kind == layer || slices.Contains(c.kinds, kind)) && (!c.numbers || s.golden != nil && s.Target.IsFloat()) {
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
