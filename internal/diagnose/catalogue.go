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
	return []Hypothesis{Elsewhere, Values, NaN, Overflow, Dropout, NormOrder, Rebuilt, LastToken, Embedding, Layout, Downcast, DroppedWeights, Places}
}

// IDs lists the ids of all causes that this package names. "config/<key>" stands for any key of a config.json.
func IDs() []string {
	ids := []string{
		"norm/eps", "norm/kind", "norm/weight", "norm/order", "norm/missing",
		"residual/missing", "residual/source", "residual/scale",
		"attention/scale", "attention/mask", "attention/causal", "attention/softmax-axis", "attention/heads", "attention/gqa", "attention/anchor-missing",
		"rope/layout", "rope/theta", "rope/offset", "rope/applied",
		"linear/transposed", "linear/bias-missing", "linear/bias-twice", "linear/qkv-order", "linear/gate-up", "linear/other-layer", "linear/corrupt",
		"quant/scale", "quant/group",
		"embedding/index", "embedding/position", "embedding/type", "embedding/scale",
		"dtype/downcast", "dtype/overflow", "nan/first", "dropout",
		"layout/transposed", "layout/strided", "layout/permuted", "layout/shifted",
		"rows/from", "rows/set", "columns/set", "head/one",
		"value/scale", "value/offset", "value/sign", "value/constant", "value/clipped",
		"modulation/order", "modulation/missing",
		"state/stale", "output/tied", "output/last-token",
		"capture/same-file", "capture/wrong-tensor", "input/tokens", "input/mask",
		"config/<key>", "drift", "interaction",
		"activation/missing",
	}
	for _, k := range unaryKinds {
		ids = append(ids, "activation/"+k.name)
	}
	return ids
}
