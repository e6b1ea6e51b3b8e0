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

// findGaps lists the layers without partner and without known reason, between the joined layers around
// them, and the joined layers that are executed in another order; of a fused one the first part counts.
// Gaps that differ in block numbers only are reported once.
func (m *matcher) findGaps() {
	partner := func(n *node) *node {
		if n.join == nil || n != n.join.golden[0] {
			return nil
		}
		return n.join.actual[0]
	}
	lone := func(nodes []*node) []string {
		return labels(keep(nodes, func(n *node) bool { return n.join == nil && n.reason() == "" }))
	}
	alike := map[string]int{} // what a gap looks like in any block → its index
	for _, s := range stretches(m.golden.inOrder(), m.actual.inOrder(), partner) {
		m.Moved = append(m.Moved, labels(keep(s.golden, func(n *node) bool { return partner(n) != nil }))...)
		g := Gap{Golden: lone(s.golden), Actual: lone(s.actual), Times: 1}
		if len(g.Golden)+len(g.Actual) == 0 {
			continue
		}
		if s.after != nil {
			g.After = s.after.label
		}
		if s.before != nil {
			g.Before = s.before.label
		}
		lines := slices.Concat([]string{g.After, g.Before}, g.Golden, []string{""}, g.Actual)
		look := strings.Join(collect(lines, label.Stars), "\n")
		if i, ok := alike[look]; ok {
			m.Gaps[i].Times++
			continue
		}
		alike[look] = len(m.Gaps)
		m.Gaps = append(m.Gaps, g)
	}
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
