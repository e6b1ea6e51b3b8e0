package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
)

// suspect is a layer of each side that may be one, in one case.
type suspect struct {
	caseName string
	match.Suspect
}

// lookalike is one of them whose outputs differ.
type lookalike struct {
	match.Suspect
	error float64 // relative L2 of the worst row
	times int     // blocks and cases in which it is so
}

// String has the line to paste.
func (l *lookalike) String() string {
	golden, candidate := l.Golden, l.Candidate
	if l.times > 1 {
		golden, candidate = label.Stars(golden), label.Stars(candidate)
	}
	return fmt.Sprintf("%s of the golden and %s of the candidate stand in one place and differ (rel. L2 %.2g): if they are one layer, "+
		"join them in fixture.yaml: names: [{golden: %q, candidate: %q}]; if not, ignore both, with the reason",
		l.Golden, l.Candidate, l.error, golden, candidate)
}

// compareSuspects joins layers that may be one by a rule, as a user would, and keeps those that
// differ. Nothing of this counts as compared.
func (c *Comparison) compareSuspects(opt Options) error {
	rules := map[string][]match.Rule{} // by case
	for _, s := range c.suspects {
		rules[s.caseName] = append(rules[s.caseName], s.Rule())
	}
	found := map[match.Suspect]*lookalike{}
	for _, k := range c.Cases {
		if len(rules[k.Name]) == 0 {
			continue
		}
		with := opt.Match
		with.Rules = slices.Concat(with.Rules, rules[k.Name])
		res, err := k.Match(k.Actual, with)
		if err != nil {
			continue // rules that a user could not write either
		}
		for _, s := range c.suspects {
			if s.caseName != k.Name {
				continue
			}
			worst, err := c.differ(k, s.Suspect, res, opt)
			if err != nil {
				return err
			}
			if worst == 0 {
				continue
			}
			look := match.Suspect{Golden: label.Stars(s.Golden), Candidate: label.Stars(s.Candidate)}
			if found[look] == nil {
				found[look] = &lookalike{Suspect: s.Suspect, error: worst}
				c.lookalikes = append(c.lookalikes, found[look])
			}
			found[look].times++
		}
	}
	return nil
}

// differ returns by how much the outputs of two layers differ that a rule joined: the relative L2 of
// the worst row, 0 where they agree or cannot be compared.
func (c *Comparison) differ(k Case, s match.Suspect, res *match.Result, opt Options) (float64, error) {
	for _, pair := range res.Pairs {
		g := k.Golden.Entries[pair.Golden[0]]
		if pair.Computed || pair.Problem != "" || label.Name(g.Layer) != s.Golden || label.IsInput(g.Port) {
			continue
		}
		p, err := newPort(k, pair)
		if err != nil {
			return 0, fmt.Errorf("case %s: %w", k.Name, err)
		}
		if p.measure(opt.criteria()); p.Err == nil && !p.passes() {
			return worst(p.Base.Result), nil
		}
	}
	return 0, nil
}
