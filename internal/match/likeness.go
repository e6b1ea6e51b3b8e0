package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// likeness says how well two layers that may be one go together, by what they are given, by what is
// inside of them and by their names: 0 if nothing is known, 1 and more if much speaks for it.
func (p *search) likeness(g, a *node) float64 {
	score := g.words.affinity(a.words)
	if p.golden.nested && p.actual.nested && g.leaf != a.leaf {
		score -= 0.75
	}
	return score + p.sameParent(g, a) + g.sameInputs(a)
}

// sameParent is positive if the layers around two layers are a pair, and negative if they are those of
// others.
func (p *search) sameParent(g, a *node) float64 {
	up, other := p.golden.named[label.Parent(g.label)], p.actual.named[label.Parent(a.label)]
	switch {
	case up == nil || other == nil || up.pair == nil || other.pair == nil:
		return 0
	case up.pair == other:
		return 0.5
	}
	return -0.5
}

// sameInputs is positive if two layers were given the same: equal values or, after an error, the
// outputs of two layers that are a pair.
func (n *node) sameInputs(o *node) float64 {
	partnersMade := func(from *node) bool { return from.pair != nil && slices.Contains(o.in, from.pair.value) }
	for _, v := range n.in {
		if v.other != nil && slices.Contains(o.in, v.other) || slices.ContainsFunc(v.from, partnersMade) {
			return 1
		}
	}
	return 0
}

// score says how well two layers go together that no equal value pairs; 0 if they do not.
func (p *search) score(g, a *node) float64 {
	if !p.shapesFit(g, a) {
		return 0
	}
	return max(0, 1+p.likeness(g, a)+2*g.value.resemblance(a.value))
}

// shapesFit reports whether the outputs of two layers may be one tensor by type and shape.
func (p *search) shapesFit(g, a *node) bool {
	if g.out == nil || a.out == nil || g.out.dtype.Kind() != a.out.dtype.Kind() {
		return false
	}
	end := !g.inBlock() && !a.inBlock() // of a generating model, which may have the last row only
	_, ok := p.padding.Fit(g.out.shape, a.out.shape, layout.Allow{LastRow: p.opt.Generating || end})
	return ok
}

// accounted reports whether a layer of the other run holds the value.
func (n *node) accounted() bool {
	return n.value != nil && n.value.other != nil && len(n.value.other.from) > 0
}

// foreign says why the two runs seem to be of two models: too few different values are in both, or
// alike, that hold something of the model. "" if they do not.
func (p *search) foreign() string {
	if 2*len(p.joins) >= len(p.golden.layers) {
		return "" // the names say that it is one
	}
	n := len(keep(p.golden.values, func(g *value) bool { return g.other != nil && !g.table && !g.other.table }))
	if n < minValues {
		n += p.resembling()
	}
	if n >= minValues {
		return ""
	}
	return fmt.Sprintf("%d of the outputs of the golden (%d layers) are among those of the candidate (%d layers), or one like them, and "+
		"two models may share an embedding: the two runs are of two models, of other weights or of another input",
		n, len(p.golden.layers), len(p.actual.layers))
}

// resembling counts the golden's values that the candidate has nearly: as after an error in the
// first layer.
func (p *search) resembling() (n int) {
	actual := p.actual.layers[:min(len(p.actual.layers), maxOpen)]
	for _, g := range p.golden.layers[:min(len(p.golden.layers), maxOpen)] {
		first := g.value != nil && g.value.from[0] == g && !g.accounted()
		if first && slices.ContainsFunc(actual, func(a *node) bool { return g.value.resemblance(a.value) >= alike }) {
			n++
		}
	}
	return n
}
