package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Proposal is what Propose found.
type Proposal struct {
	Rules []Proposed `json:"rules"`
	// Joined is how many layers of the golden are joined, by their names or by a rule.
	Joined int `json:"joined"`
	// Ambiguous lists layers of which values or places do not tell which is which.
	Ambiguous []Ambiguous `json:"ambiguous"`
	// Golden and Actual list the layers that have no partner.
	Golden []Left `json:"only_golden"`
	Actual []Left `json:"only_candidate"`
	// Foreign says why the two runs seem to be of two models, "" if they do not. Then there are no
	// rules.
	Foreign string `json:"-"`
}

// Ambiguous are layers that may be each other's.
type Ambiguous struct {
	Golden    []string `json:"golden"`
	Candidate []string `json:"candidate"`
	Why       string   `json:"why"`
}

// Left is a layer without partner.
type Left struct {
	Layer string `json:"layer"`
	// Same is a layer of its own run that holds the same value and has a partner, "" if there is none:
	// the value is compared there.
	Same string `json:"same,omitempty"`
}

// evidence says what speaks for a pair of layers, the surest first.
type evidence int

const (
	byValue  evidence = iota // the outputs are equal
	byLayout                 // they are equal in another layout
	byName                   // Runs joins them
	byPlace                  // inputs, order, shapes and names
)

// search is a run of Propose.
type search struct {
	*matcher
	tolerance  float64 // up to which relative L2 values are equal
	shift      int     // by how much the candidate's numbers of blocks are more than the golden's
	shiftKnown bool    // by values
	found      []finding
	parallel   map[*node]*node // pairs that only the order speaks for, among layers that were given the same
}

// Propose searches two runs for layers that are one. tolerance is the relative L2 up to which values
// are equal. The error is that of a rule or pattern of opt.
func Propose(golden, actual []Port, opt Options, tolerance float64) (*Proposal, error) {
	m, err := joinLayers(golden, actual, opt)
	if err != nil {
		return nil, err
	}
	m.golden.read(m.padding)
	m.actual.read(m.padding)
	p := &search{matcher: m, tolerance: tolerance, parallel: map[*node]*node{}}
	if g, a := p.golden.blockNumbers(), p.actual.blockNumbers(); len(g) > 0 && len(a) == len(g) {
		p.shift = a[0] - g[0]
	}
	p.equate()
	if foreign := p.foreign(); foreign != "" {
		return &Proposal{Foreign: foreign}, nil
	}
	p.equateNamed()
	p.pairEqual(byValue)
	p.generalise(p.byNames(), byName)
	p.byColumns()
	p.equateMoved()
	p.pairEqual(byLayout)
	p.byPlace()
	out := &Proposal{Rules: []Proposed{}, Ambiguous: []Ambiguous{}, Golden: []Left{}, Actual: []Left{}} // no null in JSON
	cannot := out.adopt(p.rules(), func(rules []Proposed) error {
		with := opt
		with.Rules = slices.Concat(opt.Rules, out.MatchRules(), rulesOf(rules))
		_, err := Runs(golden, actual, with)
		return err
	})
	p.leftOver(out)
	out.Joined -= cannot
	return out, nil
}

// byNames takes what Runs joins by names, as far as values do not say otherwise.
func (p *search) byNames() (pairs []edge) {
	for _, j := range p.joins {
		g, a := j.golden[0], j.actual[0]
		switch {
		case j.ofPorts() || !p.sameBlock(g, a) || len(free(j.nodes())) < len(j.nodes()):
		case j.fused():
			for _, n := range j.nodes() {
				n.fused = true
			}
		default:
			pairs = append(pairs, edge{golden: g, actual: a})
		}
	}
	return pairs
}

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
// it, or not in the layout. Where blocks are counted from another number, or lie otherwise, each needs one.
func (p *search) rules() (rules []Proposed) {
	for _, f := range p.found {
		needed := keep(f.groups, func(j *joined) bool {
			by := j.golden[0].join // names
			return by == nil || !slices.Equal(by.golden, j.golden) || !slices.Equal(by.actual, j.actual) || j.turned() != nil
		})
		turned := keep(f.groups, func(j *joined) bool { return j.turned() != nil })
		if len(needed) > 0 && f.shift == (shift{}) && (len(turned) == 0 || len(turned) == len(f.groups) || f.by == byLayout) {
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
		if axes := g.turned(); axes != nil {
			r.Transpose, f.by = axes, byLayout
		}
		if p.equal(g) {
			r.Equal++
			if v := g.golden[0].value; !g.fused() && f.by != byLayout {
				r.Distance = max(r.Distance, v.distance(g.actual[0].value))
			}
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

// turned is the order of the candidate's axes in which its value is the golden's; nil where it lies alike.
func (j *joined) turned() []int {
	if v := j.actual[0].value; !j.fused() && v != nil {
		return v.axes
	}
	return nil
}

// lay says how the candidate's output lies, where shapes alone do not.
func (p *search) lay(r *Proposed, golden, actual []int) {
	if r.Transpose != nil {
		var err error
		if actual, err = permuted(actual, r.Transpose); err != nil {
			return
		}
	}
	if _, ok := p.padding.Fit(golden, actual, allowance{}); ok {
		return
	}
	switch {
	case sameCount(golden, actual) && len(golden) > 1:
		r.Reshape = slices.Clone(golden)
		r.Reshape[len(golden)-2] = -1 // the tokens differ from case to case
	case isLastRow(golden, actual) && !p.opt.Generating:
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
