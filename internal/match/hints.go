package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Hint proposes lines of fixture.yaml that join the first of some layers that only the golden has;
// "" where no rule does.
func (p *Proposal) Hint(left []string) (layer, lines string) {
	at := slices.IndexFunc(left, func(l string) bool {
		return slices.ContainsFunc(p.Rules, func(r Proposed) bool { return r.joins(label.Name(l)) })
	})
	if at < 0 {
		return "", ""
	}
	lines = (&Proposal{Rules: p.Rules[:min(len(p.Rules), maxRules)]}).YAML()
	if more := len(p.Rules) - maxRules; more > 0 {
		lines += fmt.Sprintf("  # and %d more: parity names -o FILE writes all of them", more)
	}
	return left[at], strings.TrimRight(lines, "\n")
}
