package cause

import (
	"github.com/goparity/goparity/internal/diagnose/fault"
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/op"
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

	{ID: "residual/missing", Also: []string{"norm/missing"}, Scene: pattern.Skipped},
	{ID: "value/constant", Also: []string{"value/sign", "value/scale", "value/offset",
		"embedding/scale", "embedding/type"}, Pair: pattern.Values},
	{ID: "nan/first", Pair: pattern.NaN},
	{ID: "dtype/overflow", Pair: pattern.Overflow},
	{ID: "value/clipped", Pair: pattern.Clipped},
	{ID: "dropout", Pair: pattern.Dropout},
	{ID: "norm/order", Pair: pattern.NormOrder},

	// Faults of ops: tried together, the best of all first.
	{ID: "norm/eps", Op: of(fault.NormEps)},
	{ID: "norm/kind", Op: of(fault.NormKind)},
	{ID: "norm/weight", Op: of(fault.NormWeight)},
	{ID: "norm/missing", Op: of(fault.NormLeftOut)},
	{ID: "dtype/downcast", Op: of(fault.NormRounded)},
	{ID: "dtype/overflow", Op: of(fault.NormOverflow)},
	{ID: "activation/missing", Also: append(activations(), "linear/gate-up"), Op: of(fault.Activation)},
	{ID: "linear/gate-up", Also: append(activations(), "activation/missing"), Op: of(fault.Gating)},
	{ID: "config/final_logit_softcapping", Op: of(fault.SoftCap)},
	{ID: "residual/missing", Also: tables(), Op: of(fault.ResidualMissing)},
	{ID: "residual/scale", Also: []string{"config/<key>"}, Op: of(fault.ResidualScale)},
	{ID: "residual/source", Also: tables(), Op: of(fault.ResidualSource)},
	{ID: "residual/source", Op: of(fault.ResidualExcess)},
	{ID: "value/scale", Also: []string{"embedding/scale", "config/<key>"}, Op: of(fault.Multiple)},
	{ID: "residual/source", Also: []string{"norm/order", "activation/missing", "embedding/scale", "config/<key>"},
		Op: of(fault.Source)},
	{ID: "modulation/order", Also: []string{"modulation/missing", "norm/order", "residual/missing", "residual/source"},
		Op: of(fault.Modulation)},

	{ID: "moe/renorm", Also: []string{"moe/scores", "moe/scaling", "moe/bias", "moe/shares"}, Op: of(fault.Routing)},
	{ID: "moe/expert-order", Also: append(activations(), "moe/k", "moe/shares", "moe/renorm", "linear/gate-up", "linear/transposed",
		"linear/bias-missing", "activation/missing", "value/clipped", "dtype/downcast"), Op: of(fault.Experts)},
	{ID: "moe/expert-order", Also: []string{"linear/gate-up", "linear/bias-missing", "linear/transposed", "moe/shares", "dtype/downcast"}, Op: of(fault.Expert)},
	{ID: "moe/shared", Op: of(fault.SharedExpert)},

	{ID: "attention/scale", Op: of(fault.AttentionScale)},
	{ID: "attention/causal", Op: of(fault.CausalMask)},
	{ID: "attention/mask", Op: of(fault.Mask)},
	{ID: "attention/anchor-missing", Op: of(fault.Anchor)},
	{ID: "attention/softmax-axis", Op: of(fault.SoftmaxAxis)},
	{ID: "attention/gqa", Op: of(fault.Groups)},
	{ID: "attention/heads", Op: of(fault.Heads)},
	{ID: "attention/bias", Op: of(fault.RelativeBias)},
	{ID: "dtype/downcast", Op: of(fault.Rounded)},
	{ID: "attention/heads", Also: []string{"rope/applied"}, Op: of(fault.Latent)},
	{ID: "state/sequence", Op: of(fault.Sequences)},
	{ID: "rope/sections", Op: of(fault.Sections)},
	{ID: "rope/layout", Op: of(fault.RopeLayout)},
	{ID: "rope/applied", Op: of(fault.RopeApplied)},
	{ID: "rope/offset", Op: of(fault.RopeOffset)},
	{ID: "rope/theta", Also: []string{"config/<key>", "rope/scaling"}, Op: of(fault.RopeTheta)},
	{ID: "rope/theta", Also: []string{"rope/layout", "rope/offset", "config/<key>"}, Op: of(fault.Angles)},
	{ID: "attention/anchor-missing", Also: []string{"config/<key>"}, Op: of(fault.Scores)},
	{ID: "linear/qkv-order", Op: of(fault.QKVOrder)},
	{ID: "state/stale", Op: of(fault.Stale)},
	{ID: "layout/shifted", Op: of(fault.Shifted)},
	{ID: "state/stale", Also: []string{"rope/offset", "attention/mask"}, Op: of(fault.Steps)},
	{ID: "state/slot", Also: []string{"state/chunk", "state/window", "state/position", "state/sequence", "state/stale", "mask/padding"},
		Op: of(fault.State)},
	{ID: "state/position", Op: of(fault.FedTable)},
	{ID: "state/position", Op: of(fault.FedAddedTable)},
	{ID: "state/position", Op: of(fault.FedAngles)},

	{ID: "ssm/skip", Also: []string{"ssm/step", "ssm/decay", "ssm/gate", "ssm/state", "dtype/downcast"}, Op: of(fault.Scan)},
	{ID: "ssm/skip", Also: []string{"ssm/decay", "ssm/gate", "ssm/state"}, Op: of(fault.WKV)},
	{ID: "ssm/state", Op: of(fault.TimeMix)},
	{ID: "ssm/gate", Also: []string{"norm/weight", "norm/kind", "norm/eps"}, Op: of(fault.GatedNorm)},
	{ID: "conv/padding", Also: append(activations(), "activation/missing", "linear/gate-up"), Op: of(fault.Turned)},
	{ID: "residual/scale", Also: []string{"linear/other-layer"}, Op: of(fault.Columns)},
	{ID: "norm/kind", Also: []string{"norm/eps", "norm/weight", "norm/missing"}, Op: of(fault.GroupNorm)},
	{ID: "residual/missing", Op: of(fault.ChannelSum)},
	{ID: "image/resize", Op: of(fault.Upsampled)},
	{ID: "modulation/order", Also: []string{"rope/theta"}, Op: of(fault.Times)},
	{ID: "linear/qkv-order", Op: of(fault.Split)},
	{ID: "linear/gate-up", Also: []string{"linear/qkv-order", "ssm/state"}, Op: of(fault.Part)},
	{ID: "embedding/position", Also: []string{"layout/permuted", "image/class-token"}, Op: of(fault.Patches)},
	{ID: "linear/weight-zero", Op: of(fault.WeightZero)},
	{ID: "linear/weight-scale", Op: of(fault.WeightScale)},
	{ID: "linear/transposed", Op: of(fault.Transposed)},
	{ID: "linear/bias-missing", Also: []string{"linear/bias-twice"}, Op: of(fault.Bias)},
	{ID: "linear/other-layer", Also: []string{"linear/qkv-order", "linear/gate-up"}, Op: of(fault.OtherLayer)},
	{ID: "linear/qkv-order", Also: []string{"linear/gate-up"}, Op: of(fault.FusedLinear)},
	{ID: "linear/corrupt", Op: of(fault.Corrupt)},
	{ID: "quant/scale", Also: []string{"quant/group"}, Op: of(fault.Quantised)},
	{ID: "quant/zero-point", Also: []string{"quant/group", "quant/order", "quant/scale", "quant/missing"}, Op: of(fault.Grid)},
	{ID: "quant/activations", Op: of(fault.Int8Inputs)},
	{ID: "output/tied", Op: of(fault.Tied)},
	{ID: "dtype/downcast", Op: of(fault.Operands)},
	{ID: "dtype/downcast", Op: of(fault.ScaledOperands)},
	{ID: "linear/qkv-order", Also: []string{"linear/gate-up"}, Op: of(fault.Sibling)},
	{ID: "linear/qkv-order", Also: []string{"linear/gate-up"}, Op: of(fault.FusedGiven)},

	{ID: "embedding/index", Also: append(tables(), "embedding/scale"), Op: of(fault.Table)},
	{ID: "embedding/position", Op: of(fault.AddedTable)},
	{ID: "output/last-token", Op: of(fault.LastToken)},

	{ID: "attention/bias", Scene: fault.Buckets},
	{ID: "moe/bias", Also: []string{"moe/groups", "moe/scores"}, Scene: fault.Choice},
	{ID: "state/position", Scene: pattern.FedPositions},
	{ID: "state/stale", Scene: pattern.Cached},
	{ID: "state/sequence", Also: []string{"state/stale"}, Scene: pattern.FedRows},
	{ID: "output/last-token", Scene: pattern.LastToken},
	{ID: "embedding/index", Also: tables(), Pair: pattern.Embedding},
	{ID: "embedding/position", Also: []string{"embedding/type", "rope/offset"},
		Kinds: []string{localise.KindInput, layer}, Scene: pattern.Indices},
	{ID: "layout/shifted", Also: []string{"layout/transposed", "layout/strided", "layout/permuted",
		"embedding/position", "linear/qkv-order", "linear/gate-up", "modulation/order"}, Scene: pattern.Layout},
	{ID: "dtype/downcast", Pair: pattern.Downcast},
	{ID: "dropout", Scene: pattern.DroppedWeights},
	{ID: "rows/from", Also: []string{"rows/set", "columns/set", "head/one"}, Scene: pattern.Places},
}

// tables are the ids of a table that is read wrongly.
func tables() []string { return []string{"embedding/index", "embedding/position", "embedding/type"} }

// activations are the ids of all activations.
func activations() (ids []string) {
	for _, a := range op.Activations {
		ids = append(ids, "activation/"+a.Name)
	}
	return ids
}
