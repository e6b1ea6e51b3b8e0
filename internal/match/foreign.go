package match

import (
	"fmt"
	"slices"
)

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
	seen := map[*value]bool{}
	actual := p.actual.layers[:min(len(p.actual.layers), maxOpen)]
	for _, g := range p.golden.layers[:min(len(p.golden.layers), maxOpen)] {
		if g.value == nil || seen[g.value] || g.accounted() {
			continue
		}
		seen[g.value] = true
		if slices.ContainsFunc(actual, func(a *node) bool { return g.value.resemblance(a.value) >= alike }) {
			n++
		}
	}
	return n
}
