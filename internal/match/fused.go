package match

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// fusion is a projection that one engine computes in one matrix product and the other in several.
type fusion struct {
	fused []string   // folded names of the one layer
	parts [][]string // folded names of the others, in the order of the columns
}

// Interleaved forms (query_key_value, whose columns go by head) are not among them: only a rule can say how they lie.
var fusions = []fusion{
	{
		fused: []string{"qkvproj", "qkv", "wqkv", "cattn", "inproj", "toqkv", "qkvlinear", "qkvlin"},
		parts: [][]string{{"qproj", "query", "toq", "qlin", "q", "wq", "queryproj", "linearq"}, {"kproj", "key", "tok", "klin", "k", "wk",
			"keyproj", "lineark"},
			{"vproj", "value", "tov", "vlin", "v", "wv", "valueproj", "linearv"}},
	},
	{
		fused: []string{"gateupproj", "gateup", "w13", "gateandupproj"},
		parts: [][]string{{"gateproj", "gate", "w1"}, {"upproj", "up", "w3"}},
	},
}

// fused joins fused projections that are left over: the parts become one group, named like the fused layer, and take part in the rounds.
func (m *matcher) fused() {
	for i, f := range fusions {
		golden, actual := m.open(m.golden.nodes, m.actual.nodes)
		name := "*fused" + string(rune('0'+i)) // no label has a star in it by itself
		m.rounds(f.groups(golden, name), f.whole(actual, name))
		m.rounds(f.whole(golden, name), f.groups(actual, name))
	}
}

// groups makes a node of each complete set of parts with one parent.
func (f fusion) groups(nodes []*node, name string) []*node {
	children := map[string]map[string]*node{}
	var parents []*node
	for _, n := range nodes {
		p := label.Parent(n.label)
		if children[p] == nil {
			children[p] = map[string]*node{}
			parents = append(parents, n)
		}
		last := n.segs[len(n.segs)-1]
		if other := children[p][last]; other != nil { // two names that fold to one: not a clear set
			last = ""
		}
		children[p][last] = n
	}
	var out []*node
	for _, n := range parents {
		siblings := children[label.Parent(n.label)]
		for i := range f.parts[0] { // all parts in one style of names
			var members []*node
			for _, names := range f.parts {
				if s := siblings[names[i]]; s != nil && len(n.segs) > 0 {
					members = append(members, s)
				}
			}
			if len(members) == len(f.parts) {
				g := f.rename(members[0], name)
				g.members = members
				out = append(out, g)
				break
			}
		}
	}
	return out
}

// whole makes a node of each fused layer.
func (f fusion) whole(nodes []*node, name string) []*node {
	var out []*node
	for _, n := range nodes {
		if slices.Contains(f.fused, n.segs[len(n.segs)-1]) {
			g := f.rename(n, name)
			g.members = []*node{n}
			out = append(out, g)
		}
	}
	return out
}

// rename gives a node of the same parent with another last segment.
func (f fusion) rename(n *node, name string) *node {
	segs := append(slices.Clone(n.segs[:len(n.segs)-1]), name)
	return &node{label: label.Parent(n.label) + "." + name, segs: segs, loose: loose(segs), passes: map[pass][]int{}}
}
