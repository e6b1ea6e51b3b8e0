package fault

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
)

// GroupNorm is a norm of groups of channels done otherwise.
func GroupNorm(o *rebuild.GroupNorm) (out List) {
	add := func(id string, rank int, text string, change func(n *rebuild.GroupNorm)) {
		out.add(with(o, change), rank, "%s", text).ID = id
	}
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, len(o.Weight)} {
		if n != o.Groups && len(o.Weight)%n == 0 {
			add("norm/kind", 0, fmt.Sprintf("the norm has %d groups of channels and not %d", n, o.Groups), func(x *rebuild.GroupNorm) { x.Groups = n })
		}
	}
	add("norm/kind", 1, "an RMS norm of groups in place of a group norm", func(x *rebuild.GroupNorm) { x.Uncentered = true })
	for _, eps := range append([]float64{0}, op.Epsilons...) {
		if eps != o.Eps {
			add("norm/eps", 0, fmt.Sprintf("eps is %g and not %g", eps, o.Eps), func(x *rebuild.GroupNorm) { x.Eps = eps })
		}
	}
	f := o.Out.Searched(fmt.Sprintf("eps is another number than %g", o.Eps), leastEps, mostEps, nil,
		func(x float64) rebuild.Eval { return with(o, func(n *rebuild.GroupNorm) { n.Eps = x }) })
	f.ID = "norm/eps"
	out = append(out, f)
	add("norm/weight", 0, "the weight is missing", func(x *rebuild.GroupNorm) { x.Weight = nil })
	add("norm/weight", 1, "weight and bias are missing", func(x *rebuild.GroupNorm) { x.Weight, x.Bias = nil, nil })
	if o.Bias != nil {
		add("norm/weight", 0, "the bias is missing", func(x *rebuild.GroupNorm) { x.Bias = nil })
	}
	out.add(rebuild.Same(o.In), 1, "the norm is left out").ID = "norm/missing"
	return out
}

// ChannelSum is a number for each channel that is not added, or otherwise.
func ChannelSum(o *rebuild.ChannelSum) (out List) {
	out.add(o.Times(0), 0, "%s is not added", o.Term).Unless = unrecorded(o.Term)
	out.add(o.Times(2), 1, "%s is added twice", o.Term)
	out.add(o.Times(-1), 1, "%s is subtracted", o.Term)
	return out
}

// Upsampled is an image that is resized otherwise.
func Upsampled(o *rebuild.Upsampled) (out List) {
	for _, way := range op.Resizings {
		if way != o.Way {
			out.add(with(o, func(u *rebuild.Upsampled) { u.Way = way }), 0, "it is resized %s, and not %s", way, o.Way)
		}
	}
	return out
}

// Times is the embedding of the time done otherwise.
func Times(o *rebuild.Times) (out List) {
	add := func(id string, rank int, text string, change func(t *rebuild.Times)) {
		out.add(with(o, change), rank, "%s", text).ID = id
	}
	const order, theta = "modulation/order", "rope/theta"
	add(order, 0, "sines and cosines of the time are exchanged", func(t *rebuild.Times) { t.SinesFirst = !t.SinesFirst })
	add(order, 0, "cosine and sine of each frequency stand side by side, and not in halves", func(t *rebuild.Times) { t.Paired = true })
	for _, p := range []float64{1e3, 1e5, 100, 1e6} {
		add(theta, 0, fmt.Sprintf("the longest period of the time is %g and not %g", p, o.Period), func(t *rebuild.Times) { t.Period = p })
	}
	add(theta, 0, fmt.Sprintf("the frequencies of the time end with i/(n−%d) and not with i/(n−%d)", 1-o.Shift, o.Shift),
		func(t *rebuild.Times) { t.Shift = 1 - o.Shift })
	for _, f := range []float64{1000, 0.001, 2, 0.5} {
		add(theta, 1, fmt.Sprintf("the time is multiplied by %g", f), func(t *rebuild.Times) { t.Scale *= f })
	}
	return out
}

// Split is a projection whose columns are read as other heads.
func Split(o *rebuild.Split) (out List) {
	for part := range o.Parts {
		if part != o.Part {
			out.add(with(o, func(s *rebuild.Split) { s.Part = part }), 0, "it is part %d of %s and not part %d", part+1, o.In, o.Part+1)
		}
	}
	if o.Parts > 1 {
		out.add(with(o, func(s *rebuild.Split) { s.Grouped = !s.Grouped }), 0, "the parts of %s are read by head, or the heads by part", o.In)
	}
	return out
}

// Part is other columns of a value than the right ones.
func Part(o *rebuild.Part) (out List) {
	for _, first := range o.Others() {
		f := out.add(with(o, func(p *rebuild.Part) { p.First = first }), 0, "it takes the columns of %s from %d on and not from %d", o.In, first, o.First)
		switch layer := o.In.Layer(); {
		case module.FusedQKV.Has(layer):
			f.ID = "linear/qkv-order"
		case label.Last(layer) == "x_proj":
			f.ID = ssmState
		}
	}
	return out
}
