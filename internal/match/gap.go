package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// when is the position of a node's first pass in the order of its side.
func (s *side) when(n *node) int {
	at := -1
	for _, ports := range n.passes {
		if last := s.rank[ports[len(ports)-1]]; at < 0 || last < at {
			at = last
		}
	}
	return at
}

func (s *side) inOrder() []*node {
	nodes := slices.Clone(s.nodes)
	slices.SortStableFunc(nodes, func(a, b *node) int { return s.when(a) - s.when(b) })
	return nodes
}

// gaps lists the layers without partner and without known reason, between the joined layers around them. Gaps that differ in block numbers
// only are
// reported once.
func (p *pairing) gaps() []Gap {
	golden := p.golden.inOrder()
	var list []*Gap
	after := map[string]*Gap{} // by golden label of the layer before
	at := func(label string) *Gap {
		if after[label] == nil {
			after[label] = &Gap{After: label, Before: p.nextJoined(golden, label)}
			list = append(list, after[label])
		}
		return after[label]
	}
	last := ""
	for _, n := range golden {
		if p.ofGolden[n] != nil {
			last = n.label
		} else if p.layerReason(p.golden, n) == "" {
			g := at(last)
			g.Golden = append(g.Golden, n.label)
		}
	}
	last = ""
	for _, n := range p.actual.inOrder() {
		if j := p.ofActual[n]; j != nil {
			last = j.golden[0].label
		} else if p.layerReason(p.actual, n) == "" {
			g := at(last)
			g.Actual = append(g.Actual, n.label)
		}
	}
	order := map[string]int{"": -1}
	for i, n := range golden {
		order[n.label] = i
	}
	slices.SortStableFunc(list, func(a, b *Gap) int { return order[a.After] - order[b.After] })
	var out []Gap
	alike := map[string]int{}
	for _, g := range list {
		var k string
		for _, layer := range slices.Concat([]string{g.After, g.Before}, g.Golden, []string{""}, g.Actual) {
			k += label.Stars(layer) + "\n"
		}
		if i, ok := alike[k]; ok {
			out[i].Times++
			continue
		}
		alike[k] = len(out)
		g.Times = 1
		out = append(out, *g)
	}
	for i := range out {
		out[i].YAML = p.yaml(out[i])
	}
	return out
}

func (p *pairing) nextJoined(golden []*node, label string) string {
	passed := label == ""
	for _, n := range golden {
		if passed && p.ofGolden[n] != nil {
			return n.label
		}
		passed = passed || n.label == label
	}
	return ""
}

// yaml proposes what to put into the fixture: a rename if one layer stands against one, else to ignore them.
func (p *pairing) yaml(g Gap) string {
	pattern := func(layer string) string {
		if g.Times > 1 {
			layer = label.Stars(layer)
		}
		return strconv.Quote(layer)
	}
	if len(g.Golden) == 1 && len(g.Actual) == 1 {
		return fmt.Sprintf("names:\n  - golden: [%s]\n    candidate: [%s]\n", pattern(g.Golden[0]), pattern(g.Actual[0]))
	}
	var b strings.Builder
	b.WriteString("ignore:\n")
	for i, label := range slices.Concat(g.Golden, g.Actual) {
		who := "the candidate has no such layer"
		if i >= len(g.Golden) {
			who = "the reference has no such layer"
		}
		fmt.Fprintf(&b, "  - layers: %s\n    reason: %q\n", pattern(label), who)
	}
	return b.String()
}

func (g Gap) text() string {
	list := func(who string, labels []string) string {
		switch len(labels) {
		case 0:
			return ""
		case 1:
			return who + " " + labels[0]
		case 2:
			return who + " " + labels[0] + ", " + labels[1]
		}
		return fmt.Sprintf("%s %s … %s (%d layers)", who, labels[0], labels[len(labels)-1], len(labels))
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
