package match

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// applyRules joins what the rules name. A rule without wildcards must find its layers, one with
// wildcards at least once.
func (m *matcher) applyRules() error {
	var errs []error
	for i := range m.opt.Rules {
		r := &m.opt.Rules[i]
		err := r.Validate()
		if err == nil {
			err = m.applyRule(r)
		}
		if lack := (*notOne)(nil); m.opt.Partial && errors.As(err, &lack) && len(lack.found) == 0 {
			m.Unused = append(m.Unused, fmt.Sprintf("the rule %s is left out: %v", r, lack))
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (m *matcher) applyRule(r *Rule) error {
	name, _ := splitPort(r.Golden[0])
	pattern, wild := capturing(name), wildcards(name) > 0
	found := m.golden.called(name)
	if wild {
		found = keep(m.golden.nodes, func(n *node) bool { return pattern.MatchString(n.label) })
	}
	if len(found) == 0 || !wild && len(found) > 1 {
		return fmt.Errorf("match: rule %s: %w", r, &notOne{m.golden, name, found})
	}
	errs := collect(found, func(n *node) error {
		captured := pattern.FindStringSubmatch(n.label) // nil for a name that is one in normal form only
		return m.applyTo(r, n, captured[min(1, len(captured)):])
	})
	if slices.Contains(errs, nil) {
		return nil
	}
	return fmt.Errorf("match: rule %s: %w", r, errs[0])
}

// applyTo joins what a rule names, from its first golden layer on.
func (m *matcher) applyTo(r *Rule, first *node, captured []string) error {
	j := &joined{golden: []*node{first}, rule: r}
	for i, name := range slices.Concat(r.Golden[1:], r.Candidate) {
		s, nodes := m.actual, &j.actual
		if i < len(r.Golden)-1 {
			s, nodes = m.golden, &j.golden
		}
		name, _ = splitPort(name)
		name = substitute(name, captured)
		found := s.called(name)
		if len(found) != 1 {
			return &notOne{s, name, found}
		}
		*nodes = append(*nodes, found[0])
	}
	_, j.ports[0] = splitPort(r.Golden[0])
	_, j.ports[1] = splitPort(r.Candidate[0])
	if j.ofPorts() {
		if err := errors.Join(j.golden[0].checkPort(j.ports[0]), j.actual[0].checkPort(j.ports[1])); err != nil {
			return err
		}
		m.joins = append(m.joins, j) // the other ports of the two layers are joined as ever
		return nil
	}
	for _, n := range j.nodes() {
		if n.join != nil {
			return fmt.Errorf("%s %q is in two rules", n.side.name, n.label)
		}
	}
	m.addJoin(j)
	return nil
}

// checkPort says which ports a layer has if this is none of them.
func (n *node) checkPort(name string) error {
	var ports []*port
	for _, c := range n.calls {
		ports = append(ports, slices.Concat(c.ports[:]...)...)
	}
	names := slices.Compact(sortedNames(ports))
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%s %q has no port %q, only %s", n.side.name, n.label, name, strings.Join(names, ", "))
}

// called returns the layer of a name or, if there is none, those whose labels end with it at a dot,
// as it is or in normal form.
func (s *side) called(name string) []*node {
	if n := s.named[name]; n != nil {
		return []*node{n}
	}
	if s.ends[0] == nil {
		s.ends = [2]map[string][]*node{{}, {}}
		for _, n := range s.nodes {
			for i, end := range [2]string{n.label, strings.Join(n.form, ".")} {
				for more := true; more; _, end, more = strings.Cut(end, ".") {
					s.ends[i][end] = append(s.ends[i][end], n)
				}
			}
		}
	}
	if found := s.ends[0][name]; len(found) > 0 {
		return found
	}
	return s.ends[1][strings.Join(normal(name), ".")]
}

// notOne is the error of a name that means no layer or several. Its text is made when it is read:
// it takes a search.
type notOne struct {
	side  *side
	name  string
	found []*node
}

func (e *notOne) Error() string {
	if len(e.found) > 0 {
		return fmt.Sprintf("%s %q is the end of %s: write more of it", e.side.name, e.name, quoted(e.found))
	}
	return fmt.Sprintf("the %s run has no layer %q%s", e.side.name, e.name, didYouMean(e.name, labels(e.side.nodes)))
}

func labels(nodes []*node) []string { return collect(nodes, func(n *node) string { return n.label }) }

var wildcard = regexp.MustCompile(`\*\*?`)

func wildcards(name string) int { return len(wildcard.FindAllStringIndex(name, -1)) }

// capturing makes a regular expression of a pattern with * and **, which matches the end of a label
// at a dot.
func capturing(pattern string) *regexp.Regexp {
	expr := strings.NewReplacer(`\*\*`, `(.*)`, `\*`, `([^.]*)`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s:^|\.)` + expr + "$")
}

// substitute puts what was captured in the place of the wildcards, and nothing where that is not
// enough.
func substitute(pattern string, captured []string) string {
	return wildcard.ReplaceAllStringFunc(pattern, func(string) string {
		if len(captured) == 0 {
			return ""
		}
		s := captured[0]
		captured = captured[1:]
		return s
	})
}
