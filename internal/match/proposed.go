package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/layout"
)

// Proposed is a proposed rule, and what speaks for it.
type Proposed struct {
	Rule
	Sure     string  `json:"sure"`     // Certain, Likely or Possible
	Equal    int     `json:"equal"`    // pairs of layers whose outputs are equal
	Pairs    int     `json:"pairs"`    // all pairs that the rule joins
	Distance float64 `json:"distance"` // the largest relative L2 of the equal ones

	end int // place in the golden's order
}

// How sure a rule is.
const (
	Certain  = "certain"  // all that it joins holds equal values
	Likely   = "likely"   // some of what it joins does, the rest is named alike
	Possible = "possible" // no value agrees: by the order, the shapes and the names
)

// MatchRules returns the rules as Runs takes them.
func (p *Proposal) MatchRules() []Rule { return rulesOf(p.Rules) }

func rulesOf(rules []Proposed) []Rule { return collect(rules, func(r Proposed) Rule { return r.Rule }) }

// joins reports whether a rule names a golden layer.
func (r *Proposed) joins(golden string) bool {
	return slices.ContainsFunc(r.Golden, func(pattern string) bool { return openNumbers(pattern).MatchString(golden) })
}

// rules writes what was found as rules, as far as Runs does not join it by names, and nothing else to
// it. Where blocks are counted from another number each needs one.
func (p *search) rules() (rules []Proposed) {
	for _, f := range p.found {
		needed := keep(f.groups, func(j *joined) bool {
			by := j.golden[0].join // names
			return by == nil || !slices.Equal(by.golden, j.golden) || !slices.Equal(by.actual, j.actual)
		})
		if len(needed) > 0 && f.shift == (shift{}) {
			rules = append(rules, p.rule(f, Rule{Golden: f.golden, Candidate: f.actual}))
			continue
		}
		for _, j := range needed {
			f.groups = []*joined{j}
			rules = append(rules, p.rule(f, Rule{Golden: labels(j.golden), Candidate: labels(j.actual)}))
		}
	}
	slices.SortStableFunc(rules, func(a, b Proposed) int { return a.end - b.end })
	return rules
}

// adopt adds the rules that Runs can apply together with those before them, and lists the others as
// ambiguous. It returns how many pairs these would have joined.
func (p *Proposal) adopt(rules []Proposed, try func([]Proposed) error) (cannot int) {
	if len(rules) == 0 {
		return 0
	}
	err := try(rules)
	switch half := len(rules) / 2; {
	case err == nil:
		p.Rules = append(p.Rules, rules...)
		return 0
	case half == 0:
		p.Ambiguous = append(p.Ambiguous, Ambiguous{rules[0].Golden, rules[0].Candidate, err.Error()})
		return rules[0].Pairs
	default:
		cannot = p.adopt(rules[:half], try)
		return cannot + p.adopt(rules[half:], try)
	}
}

// rule says what speaks for a rule of what was found.
func (p *search) rule(f finding, rule Rule) Proposed {
	first := f.groups[0]
	r := Proposed{Rule: rule, Sure: Possible, Pairs: len(f.groups), end: first.golden[0].end}
	for _, g := range f.groups {
		if p.equal(g) {
			r.Equal++
			if v := g.golden[0].value; !g.fused() && f.by != byLayout {
				r.Distance = max(r.Distance, v.distance(g.actual[0].value))
			}
		}
		if v := g.actual[0].value; !g.fused() && v != nil && v.axes != nil {
			r.Transpose = v.axes
		}
	}
	switch {
	case f.by == byLayout || r.Equal == r.Pairs:
		r.Sure = Certain
	case f.by == byValue:
		r.Sure = Likely
	}
	if !first.fused() {
		p.lay(&r, first.golden[0].out.shape, first.actual[0].out.shape)
	}
	r.Reason = r.why(f.by)
	return r
}

// lay says how the candidate's output lies, where shapes alone do not.
func (p *search) lay(r *Proposed, golden, actual []int) {
	if r.Transpose != nil {
		var err error
		if actual, err = layout.Permute(actual, r.Transpose); err != nil {
			return
		}
	}
	if _, ok := p.padding.Fit(golden, actual, layout.Allow{}); ok {
		return
	}
	switch {
	case layout.SameCount(golden, actual) && len(golden) > 1:
		r.Reshape = slices.Clone(golden)
		r.Reshape[len(golden)-2] = -1 // the tokens differ from case to case
	case layout.IsLastRow(golden, actual) && !p.opt.Generating:
		r.Rows = LastRow
	}
}

// why says in words what speaks for a rule.
func (r *Proposed) why(by evidence) string {
	within := ", bit for bit"
	if r.Distance != 0 {
		within = fmt.Sprintf(" (rel. L2 ≤ %.1g)", r.Distance)
	}
	fused := len(r.Golden)+len(r.Candidate) > 2
	switch {
	case fused && r.Equal > 0:
		return fmt.Sprintf("the columns are equal in %d of %d", r.Equal, r.Pairs)
	case by == byLayout:
		return "equal values in another layout"
	case r.Equal > 0 && r.Equal == r.Pairs:
		return "equal values" + within
	case r.Equal > 0:
		return fmt.Sprintf("equal values in %d of %d%s, the others are called alike", r.Equal, r.Pairs, within)
	case by == byValue: // of a rule for one block only
		return "called like the layers of other blocks whose values are equal"
	case by == byName:
		return "named alike"
	}
	return "place, shape and name; no value agrees"
}

// leftOver lists what has no partner.
func (p *search) leftOver(out *Proposal) {
	for _, g := range p.golden.layers {
		if !g.free() {
			out.Joined++
		} else if a := g.rivals(); len(a) > 0 && free(g.value.from)[0] == g {
			out.Ambiguous = append(out.Ambiguous, Ambiguous{labels(free(g.value.from)), labels(a), "all of them hold one value"})
		}
	}
	p.exchangeable(out)
	out.Golden, out.Actual = left(p.golden), left(p.actual)
}

// exchangeable lists the layers that were given the same and that only the order tells apart, once
// for all blocks.
func (p *search) exchangeable(out *Proposal) {
	said := map[string]bool{}
	for _, g := range p.golden.layers {
		if p.parallel[g] == nil || !g.free() || said[g.key()] {
			continue
		}
		a := Ambiguous{Why: "they were given the same, and no value or word tells which is which"}
		for _, o := range p.golden.layers {
			if o.free() && p.parallel[o] != nil && p.parallel[o].free() && parallel(g, o) {
				said[o.key()] = true
				a.Golden, a.Candidate = append(a.Golden, o.label), append(a.Candidate, p.parallel[o].label)
			}
		}
		if len(a.Golden) > 1 {
			out.Ambiguous = append(out.Ambiguous, a)
		}
	}
}

// free returns the layers without partner.
func free(nodes []*node) []*node { return keep(nodes, (*node).free) }

// rivals are the layers of the other run without partner that hold the value of a layer.
func (n *node) rivals() []*node {
	if !n.accounted() {
		return nil
	}
	return free(n.value.other.from)
}

// left lists the layers of a side without partner, but for those that are ambiguous.
func left(s *side) (out []Left) {
	for _, n := range s.layers {
		if !n.free() || n.out == nil || len(n.rivals()) > 0 {
			continue
		}
		left := Left{Layer: n.label}
		if n.value != nil {
			if o := find(n.value.from, func(o *node) bool { return !o.free() }); o != nil {
				left.Same = o.label
			}
		}
		out = append(out, left)
	}
	return out
}
