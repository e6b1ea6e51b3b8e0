package names

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/match"
)

func matchPorts(ports []Port) []match.Port {
	out := make([]match.Port, len(ports))
	for i, p := range ports {
		out[i] = p.Port
	}
	return out
}

func anyNumbered(s *side) bool { return slices.ContainsFunc(s.layers, (*layer).numbered) }

// byNames takes what package match joins by names, as far as values do not say otherwise.
func (p *proposing) byNames() {
	var votes []vote
	for _, g := range p.golden.layers {
		partners := p.named[g.name]
		for _, name := range partners {
			name, _ = label.CutCall(name)
			a := p.actual.named[name]
			if a == nil || !g.free() || !a.free() || !p.sameBlock(g, a) {
				continue
			}
			if len(partners) > 1 || p.shared(g.name, name) {
				g.fused, a.fused = true, true
				continue
			}
			votes = append(votes, vote{g, a})
		}
	}
	p.generalise(votes, byName)
}

// sameBlock reports whether two layers are in blocks that belong together, as far as values told from
// which number the candidate counts.
func (p *proposing) sameBlock(g, a *layer) bool {
	return len(g.runs) == 0 || len(a.runs) == 0 || g.runs[0].number+p.shift == a.runs[0].number
}

// shared reports whether a candidate's layer is joined with other golden layers, too.
func (p *proposing) shared(golden, actual string) bool {
	for g, partners := range p.named {
		if g != golden && label.Name(g) == g && slices.Contains(partners, actual) {
			return true
		}
	}
	return false
}

// rules writes what was found as rules, as far as package match does not join it by names, and makes
// sure that they can be applied.
func (p *proposing) rules(out *Proposal, golden, actual []match.Port) {
	var rules []Rule
	for _, f := range p.found {
		rules = append(rules, p.ofFinding(f)...)
	}
	for _, f := range p.fused {
		rules = append(rules, f.rules()...)
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return a.at - b.at })
	cannot := keep(out, rules, func(rules []Rule) error { return p.applied(rules, golden, actual) })
	p.leftOver(out)
	out.Joined -= cannot
}

// keep adds the rules that can be applied together with those before them, and lists the others as
// ambiguous. It returns how many pairs these would have joined.
func keep(out *Proposal, rules []Rule, apply func([]Rule) error) (cannot int) {
	if len(rules) == 0 {
		return 0
	}
	err := apply(slices.Concat(out.Rules, rules))
	switch {
	case err == nil:
		out.Rules = append(out.Rules, rules...)
		return 0
	case len(rules) == 1:
		out.Ambiguous = append(out.Ambiguous, Ambiguous{rules[0].Golden, rules[0].Candidate, err.Error()})
		return rules[0].Pairs
	}
	half := len(rules) / 2
	cannot = keep(out, rules[:half], apply)
	return cannot + keep(out, rules[half:], apply)
}

// applied runs package match with rules.
func (p *proposing) applied(rules []Rule, golden, actual []match.Port) error {
	opt := p.opt
	opt.Rules = slices.Concat(opt.Rules, (&Proposal{Rules: rules}).MatchRules())
	_, err := match.Runs(golden, actual, opt)
	return err
}

// ofFinding returns the rules of a pattern; none if names join its pairs already.
func (p *proposing) ofFinding(f finding) (out []Rule) {
	var needed [][2]*layer
	for _, pair := range f.pairs {
		if !p.joinedByName(pair) {
			needed = append(needed, pair)
		}
	}
	if len(needed) == 0 {
		return nil
	}
	if f.shift == (shift{}) {
		return []Rule{p.rule(f, f.golden, f.actual, f.pairs)}
	}
	for _, pair := range needed {
		out = append(out, p.rule(f, pair[0].name, pair[1].name, [][2]*layer{pair}))
	}
	return out
}

// joinedByName reports whether package match joins a pair, and nothing else to it, without a rule.
func (p *proposing) joinedByName(pair [2]*layer) bool {
	partners := p.named[pair[0].name]
	return len(partners) == 1 && label.Name(partners[0]) == pair[1].name
}

// rule makes a rule of a pattern and the pairs that it joins.
func (p *proposing) rule(f finding, golden, actual string, pairs [][2]*layer) Rule {
	r := Rule{Rule: match.Rule{Golden: []string{golden}, Candidate: []string{actual}}, Pairs: len(pairs), at: pairs[0][0].end}
	for _, pair := range pairs {
		if equal(pair[0], pair[1]) {
			r.Equal++
			r.Distance = max(r.Distance, pair[0].value.distance(pair[1].value))
		}
	}
	r.Sure = Possible
	switch {
	case f.by == byLayout || r.Equal == r.Pairs:
		r.Sure = Certain
	case f.by == byValue:
		r.Sure = Likely
	}
	for _, pair := range f.pairs {
		if turned, ok := p.turned[pair]; ok {
			r.Transpose = turned.Transpose
		}
	}
	p.lay(&r, pairs[0])
	r.Reason = r.why(f.by)
	return r
}

// lay says how the candidate's output lies, where shapes alone do not.
func (p *proposing) lay(r *Rule, pair [2]*layer) {
	golden, actual := pair[0].out.Shape, pair[1].out.Shape
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
		r.Rows = match.LastRow
	}
}

// why says in words what speaks for a rule.
func (r *Rule) why(by evidence) string {
	switch {
	case by == byLayout && r.Transpose != nil:
		return "equal values with the axes in another order"
	case by == byLayout:
		return "equal values in the last row"
	case r.Equal > 0 && r.Equal == r.Pairs:
		return "equal values" + r.within()
	case r.Equal > 0:
		return fmt.Sprintf("equal values in %d of %d%s, the others are called alike", r.Equal, r.Pairs, r.within())
	case by == byName:
		return "named alike"
	case by == byShape:
		return "shape and name; no value agrees"
	}
	return "place in the order and shape; no value agrees"
}

// within says how equal the values are.
func (r *Rule) within() string {
	if r.Distance == 0 {
		return ", bit for bit"
	}
	return fmt.Sprintf(" (rel. L2 ≤ %.1g)", r.Distance)
}

// rules returns those of a fused layer.
func (f fusion) rules() (out []Rule) {
	one := Rule{Rule: match.Rule{Golden: f.golden, Candidate: f.actual}, Pairs: f.pairs, Equal: f.equal, Sure: Possible, at: f.at[0]}
	switch {
	case f.equal == f.pairs:
		one.Sure = Certain
	case f.equal > 0:
		one.Sure = Likely
	}
	one.Reason = "place in the order and widths; no value agrees"
	if f.equal > 0 {
		one.Reason = fmt.Sprintf("the columns are equal in %d of %d", f.equal, f.pairs)
	}
	if f.shift == (shift{}) {
		return []Rule{one}
	}
	for i, literal := range f.literal {
		r := one
		r.at = f.at[i]
		r.Golden, r.Candidate = literal.Golden, literal.Candidate
		out = append(out, r)
	}
	return out
}

// leftOver lists what has no partner.
func (p *proposing) leftOver(out *Proposal) {
	listed := map[*value]bool{}
	for _, g := range p.golden.layers {
		if !g.free() {
			out.Joined++
		} else if g.accounted() && !g.idle && !listed[g.value] {
			listed[g.value] = true
			if a := free(g.value.other.from); len(a) > 0 {
				out.Ambiguous = append(out.Ambiguous, Ambiguous{free(g.value.from), a, "all of them hold one value"})
			}
		}
	}
	p.exchangeable(out)
	out.Golden = p.left(p.golden, p.actual)
	out.Actual = p.left(p.actual, p.golden)
}

// exchangeable lists the layers that were given the same and that only the order tells apart, once
// for all blocks.
func (p *proposing) exchangeable(out *Proposal) {
	said := map[string]bool{}
	for _, g := range p.golden.layers {
		if p.parallel[g] == nil || !g.free() || len(g.in) == 0 || said[g.key()] {
			continue
		}
		a := Ambiguous{Why: "they were given the same, and no value or word tells which is which"}
		for _, o := range p.golden.layers {
			if o.free() && p.parallel[o] != nil && p.parallel[o].free() && parallel(g, o) {
				said[o.key()] = true
				a.Golden, a.Candidate = append(a.Golden, o.name), append(a.Candidate, p.parallel[o].name)
			}
		}
		if len(a.Golden) > 1 {
			out.Ambiguous = append(out.Ambiguous, a)
		}
	}
}

// free names the layers without partner.
func free(layers []*layer) (out []string) {
	for _, l := range layers {
		if l.free() && !l.idle {
			out = append(out, l.name)
		}
	}
	return out
}

// left lists the layers of a side without partner, but for those that are ambiguous.
func (p *proposing) left(s, other *side) (out []Left) {
	var rest []*layer
	for _, l := range other.layers {
		if l.free() && !l.idle && !l.accounted() {
			rest = append(rest, l)
		}
	}
	for _, l := range s.layers {
		if !l.free() || l.out == nil || l.idle || l.accounted() && len(free(l.value.other.from)) > 0 {
			continue
		}
		left := Left{Layer: l.name, Alone: l.accounted() || !slices.ContainsFunc(rest, func(o *layer) bool { return p.fits(l, o) || p.fits(o, l) })}
		if l.value != nil {
			if i := slices.IndexFunc(l.value.from, func(o *layer) bool { return !o.free() }); i >= 0 {
				left.Same, left.Alone = l.value.from[i].name, true
			}
		}
		out = append(out, left)
	}
	return out
}

// Joins reports whether a rule names a golden layer.
func (r *Rule) Joins(golden string) bool {
	return slices.ContainsFunc(r.Golden, func(pattern string) bool { _, ok := captured(pattern, golden); return ok })
}
