package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Hint is what would join a layer that only one run has, or leave it out: lines of fixture.yaml.
type Hint struct {
	Golden       bool // whose layer it is
	Layer, Lines string
}

// Hints proposes lines for what was not joined: rules that join and, only for layers that have no
// counterpart by value, shape or order, that they are ignored. left are the layers that only the golden
// has. p is nil where only one side has any.
func Hints(p *Proposal, left []string, gaps []Gap) (hints []Hint) {
	alone := [2]map[string]Left{{}, {}}
	if p != nil {
		if p.Foreign != "" {
			return nil
		}
		for side, list := range [2][]Left{p.Golden, p.Actual} {
			for _, l := range list {
				if l.Alone {
					alone[side][l.Layer] = l
				}
			}
		}
		if at := p.first(left); at >= 0 {
			hints = append(hints, Hint{true, left[at], p.few()})
		}
	}
	for _, g := range gaps {
		var lines []string
		var at *Hint
		for side, layers := range [2][]string{g.Golden, g.Actual} {
			for _, l := range layers {
				left, known := alone[side][l]
				if p != nil && !known {
					continue
				}
				if at == nil {
					at = &Hint{Golden: side == 0, Layer: l}
				}
				lines = append(lines, ignoring(side, l, left.Same, g.Times > 1))
			}
		}
		if at != nil {
			at.Lines = strings.TrimRight("ignore:\n"+strings.Join(lines, ""), "\n")
			hints = append(hints, *at)
		}
	}
	return hints
}

// first is the first of some layers of the golden that a rule joins; −1 for none.
func (p *Proposal) first(layers []string) int {
	return slices.IndexFunc(layers, func(l string) bool {
		return slices.ContainsFunc(p.Rules, func(r Proposed) bool { return r.joins(label.Name(l)) })
	})
}

// few writes the first rules.
func (p *Proposal) few() string {
	text := (&Proposal{Rules: p.Rules[:min(len(p.Rules), maxRules)]}).YAML()
	if more := len(p.Rules) - maxRules; more > 0 {
		text += fmt.Sprintf("  # and %d more: parity names -o FILE writes all of them", more)
	}
	return strings.TrimRight(text, "\n")
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
