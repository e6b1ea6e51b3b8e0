package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Gap is a stretch of layers that were not joined, between two that were.
type Gap struct {
	After, Before  string   // golden labels of the joined neighbours; "" at the beginning and the end
	Golden, Actual []string // the labels in between that have no known reason
	Times          int      // how many blocks have the same gap
}

// gaps lists the layers without partner and without known reason, between the joined layers around
// them. Gaps that differ in block numbers only are reported once.
func (m *matcher) gaps() []Gap {
	var out []Gap
	alike := map[string]int{} // what a gap looks like in any block → its index in out
	for _, s := range m.stretches() {
		g := Gap{After: s.after, Before: s.before, Golden: labels(unexplained(s.golden)), Actual: labels(unexplained(s.actual))}
		if len(g.Golden)+len(g.Actual) == 0 {
			continue
		}
		lines := slices.Concat([]string{g.After, g.Before}, g.Golden, []string{""}, g.Actual)
		look := strings.Join(collect(lines, label.Stars), "\n")
		if i, ok := alike[look]; ok {
			out[i].Times++
			continue
		}
		alike[look] = len(out)
		g.Times = 1
		out = append(out, g)
	}
	return out
}

func unexplained(nodes []*node) []*node {
	return keep(nodes, func(n *node) bool { return n.reason() == "" })
}

// stretch is what both sides have without partner between two joined layers.
type stretch struct {
	after, before  string // golden labels, "" at the beginning and the end
	golden, actual []*node
}

// stretches cuts the golden order at the joined layers, and puts the layers without partner of both
// sides into what is between.
func (m *matcher) stretches() []*stretch {
	now := &stretch{}
	list := []*stretch{now}
	behind := map[*joined]*stretch{}
	for _, n := range m.golden.inOrder() {
		if n.join != nil {
			now.before = n.label
			now = &stretch{after: n.label}
			list = append(list, now)
			if n == n.join.golden[0] {
				behind[n.join] = now
			}
		} else {
			now.golden = append(now.golden, n)
		}
	}
	now = list[0]
	for _, n := range m.actual.inOrder() {
		if n.join != nil {
			now = behind[n.join]
		} else {
			now.actual = append(now.actual, n)
		}
	}
	return list
}

// inOrder returns the nodes in the order in which their first passes ended.
func (s *side) inOrder() []*node {
	at := make([]*node, len(s.ports))
	for _, n := range s.nodes {
		end := n.last
		for _, c := range n.calls {
			end = min(end, c.last)
		}
		at[end] = n
	}
	return slices.DeleteFunc(at, func(n *node) bool { return n == nil })
}

// String says "unmatched A … B between S1 and S2".
func (g Gap) String() string {
	list := func(who string, labels []string) string {
		switch n := len(labels); {
		case n == 0:
			return ""
		case n <= 2:
			return who + " " + strings.Join(labels, ", ")
		default:
			return fmt.Sprintf("%s %s … %s (%d layers)", who, labels[0], labels[n-1], n)
		}
	}
	text := "unmatched " + join(list("golden", g.Golden), list("candidate", g.Actual))
	switch {
	case g.After != "" && g.Before != "":
		text += " between " + g.After + " and " + g.Before
	case g.After != "":
		text += " after " + g.After
	case g.Before != "":
		text += " before " + g.Before
	}
	if g.Times > 1 {
		text += fmt.Sprintf(", and in %d more blocks", g.Times-1)
	}
	return text
}

// kind is an index into layerReasons, −1 if none fits.
func (n *node) kind() int {
	return slices.IndexFunc(layerReasons, func(r layerReason) bool { return like(n.lastSegment(), r.names) })
}
