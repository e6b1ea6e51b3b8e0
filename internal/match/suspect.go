package match

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// Suspect is a layer of each side that may be one and the same: both have no partner, they stand
// between the same joined layers, no other layer there has outputs of this width, and these fit.
// Names do not say so, and nothing is paired by a guess: a [Rule] has to.
type Suspect struct {
	Golden, Candidate string // labels without calls
	Pairs             []Pair // of the first outputs, one for each pass
}

// suspects lists them in the golden's order.
func (m *matcher) suspects() (out []Suspect) {
	for _, s := range m.stretches() {
		golden, actual := byWidth(s.golden), byWidth(s.actual)
		for _, g := range s.golden {
			width, ok := g.width()
			if a := actual[width]; ok && len(golden[width]) == 1 && len(a) == 1 && mayBeOne(g, a[0]) {
				if pairs := m.suspectPairs(g, a[0]); pairs != nil {
					out = append(out, Suspect{g.label, a[0].label, pairs})
				}
			}
		}
	}
	return out
}

// suspectPairs pairs the first outputs as a rule would, and changes nothing.
func (m *matcher) suspectPairs(golden, actual *node) (pairs []Pair) {
	for _, c := range golden.calls {
		g, a := c.main(), actual.in(c.pass).main()
		if g == nil || a == nil {
			continue
		}
		if f, fits := m.fitPorts(g, a, layout.Allow{}); fits {
			pairs = append(pairs, Pair{Golden: []int{g.index}, Actual: []int{a.index}, GoldenView: f.Golden, ActualView: f.Actual,
				Shape: f.Shape, RowMask: f.RowMask})
		}
	}
	return pairs
}

func byWidth(nodes []*node) map[int][]*node {
	out := map[int][]*node{}
	for _, n := range nodes {
		if w, ok := n.width(); ok {
			out[w] = append(out[w], n)
		}
	}
	return out
}

// width is the size of the last axis of a layer's first output of floats.
func (n *node) width() (int, bool) {
	for _, c := range n.calls {
		for _, p := range c.ports[label.RoleOutput] {
			if p.dtype.IsFloat() && len(p.shape) > 0 {
				return p.shape[len(p.shape)-1], true
			}
		}
	}
	return 0, false
}

// mayBeOne reports whether two layers may compute the same by what is known of them: both are
// activations, say, or nothing is known of one. Dropout, and what else computes nothing, is no one's
// partner.
func mayBeOne(g, a *node) bool {
	i, j := g.kind(), a.kind()
	idle := func(i int) bool { return i >= 0 && layerReasons[i].idle }
	return !idle(i) && !idle(j) && (i == j || i < 0 || j < 0)
}

// kind is an index into layerReasons, −1 if none fits.
func (n *node) kind() int {
	return slices.IndexFunc(layerReasons, func(r layerReason) bool { return like(n.lastSegment(), r.names) })
}
