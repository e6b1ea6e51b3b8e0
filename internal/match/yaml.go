package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// YAML returns the rules as fixture.yaml takes them, under names. What is ambiguous is a comment.
func (p *Proposal) YAML() string {
	var b strings.Builder
	b.WriteString("names:")
	if len(p.Rules) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, r := range p.Rules {
		b.WriteString(r.YAML())
	}
	for _, a := range p.Ambiguous {
		fmt.Fprintf(&b, "# ambiguous: %s | %s: %s\n", quotedAll(a.Golden), quotedAll(a.Candidate),
			strings.ReplaceAll(a.Why, "\n", " "))
	}
	return b.String()
}

// YAML returns a rule as an entry of names.
func (r *Proposed) YAML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - golden: [%s]\n    candidate: [%s]\n", quotedAll(r.Golden), quotedAll(r.Candidate))
	for _, list := range []struct {
		key  string
		list []int
	}{{"transpose", r.Transpose}, {"reshape", r.Reshape}} {
		if list.list != nil {
			fmt.Fprintf(&b, "    %s: [%s]\n", list.key, strings.Trim(strings.ReplaceAll(fmt.Sprint(list.list), " ", ", "), "[]"))
		}
	}
	if r.Rows != "" {
		fmt.Fprintf(&b, "    rows: %s\n", r.Rows)
	}
	fmt.Fprintf(&b, "    reason: %s\n", strconv.Quote(r.Sure+": "+r.Reason))
	return b.String()
}

// quotedAll lists names as YAML strings; those of layers have no character that Go and YAML write
// differently in quotes but for those that are printed as they are.
func quotedAll(names []string) string { return strings.Join(collect(names, strconv.Quote), ", ") }

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
