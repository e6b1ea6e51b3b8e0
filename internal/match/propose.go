package match

import "slices"

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
