package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
)

// fusion is a projection that one engine computes in one matrix product and the other in several.
type fusion struct {
	whole []string   // folded names of the one layer
	parts [][]string // folded names of the others, in the order of the columns: parts[i][f] is part i in family f
}

// Interleaved forms (query_key_value, whose columns go by head) are not among them: only a rule can
// say how they lie.
var fusions = []fusion{
	{module.StackedQKV.Folded(), [][]string{module.Query.Folded(), module.Key.Folded(), module.Value.Folded()}},
	{module.StackedGateUp.Folded(), [][]string{module.Gate.Folded(), module.Up.Folded()}},
}

// fused joins fused projections that are left over: the parts become one group, named like the
// fused layer, and take part in the rounds.
func (m *matcher) fused() {
	for i, f := range fusions {
		name := fmt.Sprintf("*fused%d", i) // no label has a star in it by itself
		m.joinNamed(f.groups(m.golden, name), f.wholes(m.actual, name))
		m.joinNamed(f.wholes(m.golden, name), f.groups(m.actual, name))
	}
}

// wholes makes a group of each fused layer.
func (f fusion) wholes(s *side, name string) []*node {
	wholes := keep(open(s.nodes), func(n *node) bool { return slices.Contains(f.whole, n.lastSegment()) })
	return collect(wholes, func(n *node) *node { return standIn(name, n) })
}

// groups makes a group of each complete set of parts with one parent.
func (f fusion) groups(s *side, name string) (out []*node) {
	done := map[string]bool{}
	for _, n := range open(s.nodes) {
		parent := label.Parent(n.label)
		if done[parent] {
			continue
		}
		done[parent] = true
		if parts := f.family(open(s.children[parent])); parts != nil {
			out = append(out, standIn(name, parts...))
		}
	}
	return out
}

// family returns the siblings that are the parts of a fusion, all named as in one family; nil if
// there are none.
func (f fusion) family(siblings []*node) []*node {
	named := map[string]*node{}
	for _, n := range siblings {
		if last := n.lastSegment(); named[last] == nil {
			named[last] = n
		}
	}
	for i := range f.parts[0] {
		var parts []*node
		for _, names := range f.parts {
			if i < len(names) && named[names[i]] != nil {
				parts = append(parts, named[names[i]])
			}
		}
		if len(parts) == len(f.parts) {
			return parts
		}
	}
	return nil
}

// standIn is a node that stands for others; it has the parent of the first one.
func standIn(name string, members ...*node) *node {
	first := members[0]
	g := newNode(first.side, strings.TrimSuffix(first.label, label.Last(first.label))+name)
	g.members = members
	return g
}
