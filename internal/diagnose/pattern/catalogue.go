package cause

import (
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/localise"
)

var capture, layer = localise.KindCapture, "" // "" is an error of a layer

// catalogue has all causes, in the order in which they are tried. docs/causes.md has a row for
// each.
var catalogue = []Cause{
	{ID: "input/tokens", Also: []string{"input/mask", "embedding/position", "embedding/type", "rope/offset", "image/normalise",
		"image/channels", "image/layout"},
		Kinds: []string{localise.KindInput}, Scene: pattern.Asked},
	{ID: "interaction", Kinds: []string{localise.KindInteraction}, Scene: pattern.Interaction},
	{ID: "drift", Kinds: []string{localise.KindDrift}, Scene: pattern.Drift},
	{ID: "capture/neighbour", Also: []string{"capture/normed"}, Kinds: []string{capture}, Scene: pattern.Neighbour},
	{ID: "state/stale", Also: []string{"capture/same-file", "capture/wrong-tensor"},
		Kinds: []string{capture, layer}, Scene: pattern.Elsewhere},

	{ID: "residual/missing", Also: []string{"norm/missing", "activation/missing"}, Scene: pattern.Skipped},
	{ID: "value/constant", Also: []string{"value/sign", "value/scale", "value/offset",
		"embedding/scale", "embedding/type"}, Pair: pattern.Values},
	{ID: "nan/first", Pair: pattern.NaN},
	{ID: "dtype/overflow", Pair: pattern.Overflow},
	{ID: "value/clipped", Pair: pattern.Clipped},
	{ID: "dropout", Pair: pattern.Dropout},

	{ID: "output/last-token", Scene: pattern.LastToken},
	{ID: "embedding/index", Also: tables(), Pair: pattern.Embedding},
	{ID: "embedding/position", Also: []string{"embedding/type", "rope/offset"},
		Kinds: []string{localise.KindInput, layer}, Scene: pattern.Indices},
	{ID: "layout/shifted", Also: []string{"layout/transposed", "layout/strided", "layout/permuted",
		"embedding/position", "linear/qkv-order", "linear/gate-up", "modulation/order"}, Scene: pattern.Layout},
	{ID: "dtype/downcast", Pair: pattern.Downcast},
	{ID: "rows/from", Also: []string{"rows/set", "columns/set", "head/one"}, Scene: pattern.Places},
}

// tables are the ids of a table that is read wrongly.
func tables() []string { return []string{"embedding/index", "embedding/position", "embedding/type"} }
