package judge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/names"
	"github.com/goparity/goparity/internal/report"
)

// gap is what was not joined, in one case.
type gap struct {
	Case
	match.Gap
}

// suggest puts lines for fixture.yaml beside what only one side has: rules that join and, only for
// layers that have no counterpart by value, shape or order, that they are ignored.
func (c *Comparison) suggest() {
	alone := map[string]names.Left{} // by side and layer; of those without a counterpart
	var proposal *names.Proposal
	if k, both := c.bothLeft(); both {
		err := mapfile.Guard(func() (err error) { proposal, err = k.Propose(c.match); return err })
		if err != nil || proposal.Foreign != "" {
			return
		}
		for side, list := range [2][]names.Left{proposal.Golden, proposal.Actual} {
			for _, l := range list {
				if l.Alone {
					alone[sideKey(side, l.Layer)] = l
				}
			}
		}
	}
	first := [2]map[string]*report.Lone{firstLones(c.Unmatched.Golden), firstLones(c.Unmatched.Actual)}
	if proposal != nil && len(proposal.Rules) > 0 {
		c.hintRules(proposal.Rules, first[0])
	}
	for _, g := range c.gaps {
		var lines []string
		at, layer := -1, ""
		for side, layers := range [2][]string{g.Gap.Golden, g.Gap.Actual} {
			for _, l := range layers {
				left, known := alone[sideKey(side, l)]
				if proposal != nil && !known {
					continue
				}
				if at < 0 {
					at, layer = side, l
				}
				lines = append(lines, ignoring(side, l, left.Same, g.Times > 1))
			}
		}
		if at >= 0 {
			hint(first[at], layer, "ignore:\n"+strings.Join(lines, ""))
		}
	}
}

func sideKey(side int, layer string) string { return strconv.Itoa(side) + layer }

// bothLeft returns the first case in which both sides have layers without a partner.
func (c *Comparison) bothLeft() (Case, bool) {
	for _, k := range c.Cases {
		var golden, actual bool
		for _, g := range c.gaps {
			if g.Name == k.Name {
				golden, actual = golden || len(g.Gap.Golden) > 0, actual || len(g.Gap.Actual) > 0
			}
		}
		if golden && actual {
			return k, true
		}
	}
	return Case{}, false
}

// hintRules puts rules beside the first port that one of them joins.
func (c *Comparison) hintRules(rules []names.Rule, first map[string]*report.Lone) {
	var b strings.Builder
	b.WriteString("names:\n")
	for i := range rules[:min(len(rules), maxRules)] {
		b.WriteString(rules[i].YAML())
	}
	if more := len(rules) - maxRules; more > 0 {
		fmt.Fprintf(&b, "  # and %d more: parity names -o FILE writes all of them\n", more)
	}
	for _, l := range c.Unmatched.Golden {
		layer := l.Name[:strings.LastIndexByte(l.Name, ' ')]
		for i := range rules {
			if rules[i].Joins(label.Name(layer)) {
				hint(first, layer, b.String())
				return
			}
		}
	}
}

// hint adds lines to the first port of a layer.
func hint(first map[string]*report.Lone, layer, lines string) {
	if l := first[layer]; l != nil {
		l.Hint = strings.TrimRight(lines, "\n")
		delete(first, layer)
	}
}

// ignoring is an entry of ignore, for all blocks or one.
func ignoring(side int, layer, same string, all bool) string {
	reason := fmt.Sprintf("the %s has no such layer", [2]string{"candidate", "reference"}[side])
	if same != "" {
		reason = "it holds what " + same + " holds, which is compared"
	}
	if all {
		layer, reason = label.Stars(layer), strings.Replace(reason, same, label.Stars(same), 1)
	}
	return fmt.Sprintf("  - layers: %q\n    reason: %q\n", layer, reason)
}

// firstLones returns of each layer the first port that has no hint yet.
func firstLones(lones []report.Lone) map[string]*report.Lone {
	first := map[string]*report.Lone{}
	for i := range lones {
		l := &lones[i]
		layer := l.Name[:strings.LastIndexByte(l.Name, ' ')]
		if l.Hint == "" && first[layer] == nil {
			first[layer] = l
		}
	}
	return first
}
