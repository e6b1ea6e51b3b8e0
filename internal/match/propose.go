package match

import (
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// Proposal is what Propose found.
type Proposal struct {
	Rules []Proposed
	// Joined is how many layers of the golden are joined, by their names or by a rule.
	Joined int
	// Ambiguous lists layers of which values or places do not tell which is which.
	Ambiguous []Ambiguous
	// Golden and Actual list the layers that have no partner; those that do nothing in inference are
	// left out.
	Golden, Actual []Left
	// Foreign says why the two runs seem to be of two models, "" if they do not. Then there are no
	// rules.
	Foreign string
}

// Ambiguous are layers that may be each other's.
type Ambiguous struct {
	Golden, Candidate []string
	Why               string
}

// Left is a layer without partner.
type Left struct {
	Layer string
	// Same is a layer of its own run that holds the same value and has a partner, "" if there is none:
	// the value is compared there.
	Same string
	// Alone says that no layer that the other run has left may be its partner by shape.
	Alone bool
}

// evidence says what speaks for a pair of layers, the surest first.
type evidence int

const (
	byValue  evidence = iota // the outputs are equal
	byLayout                 // they are equal in another layout
	byName                   // Runs joins them
	byOrder                  // place in the order, shape and names
	byShape                  // shape and names
)

// search is a run of Propose.
type search struct {
	golden, actual *contents
	ports          [2][]Port
	opt            Options
	padding        layout.Padding
	tolerance      float64             // up to which relative L2 values are equal
	named          map[string][]string // what Runs joins
	blocks         bool                // both sides have numbered blocks
	shift          int                 // by how much the candidate's numbers of blocks are more than the golden's
	shiftKnown     bool                // by values
	found          []finding
	claimed        map[string]bool    // keys of layers that have partners in some blocks, or have none
	turned         map[[2]*node][]int // order of axes of pairs that hold one value in two layouts
	moments        map[*node]moments
	parallel       map[*node]*node // pairs that only the order speaks for, among layers that were given the same
}

// Propose searches two runs for layers that are one. tolerance is the relative L2 up to which values
// are equal. The error is that of a rule or pattern of opt.
func Propose(golden, actual []Port, opt Options, tolerance float64) (*Proposal, error) {
	m, _, err := newMatcher(golden, actual, opt)
	if err != nil {
		return nil, err
	}
	p := &search{golden: m.golden.read(m.padding), actual: m.actual.read(m.padding), ports: [2][]Port{golden, actual},
		opt: opt, padding: m.padding, tolerance: tolerance, turned: map[[2]*node][]int{},
		moments: map[*node]moments{}, claimed: map[string]bool{},
		parallel: map[*node]*node{}}
	if r, err := Runs(golden, actual, opt); err == nil { // ambiguous names are what values may tell apart
		p.named = r.Layers
	}
	g, n := p.golden.first()
	if a, k := p.actual.first(); n > 0 && k > 0 {
		p.blocks = true
		if n == k {
			p.shift = a - g
		}
	}
	p.equate()
	if foreign := p.foreign(); foreign != "" {
		return &Proposal{Foreign: foreign}, nil
	}
	p.byValue()
	p.generalise(p.byNames(), byName)
	p.byColumns()
	p.byLayout()
	p.carry()
	return p.propose(), nil
}

// byNames takes what Runs joins by names, as far as values do not say otherwise.
func (p *search) byNames() (pairs []edge) {
	shared := map[string]int{} // how many golden layers a candidate's is joined with
	for g, partners := range p.named {
		for _, a := range partners {
			if label.Name(g) == g {
				shared[a]++
			}
		}
	}
	for _, g := range p.golden.layers {
		partners := p.named[g.label]
		for _, name := range partners {
			a := p.actual.named[label.Name(name)]
			if a == nil || !g.free() || !a.free() || !p.sameBlock(g, a) {
				continue
			}
			if len(partners) > 1 || shared[a.label] > 1 {
				g.fused, a.fused = true, true
			} else {
				pairs = append(pairs, edge{golden: g, actual: a})
			}
		}
	}
	return pairs
}

// carry pairs what no value and no name pairs, by what it was given and in the order of execution,
// again and again: what is found tells more of the rest.
func (p *search) carry() {
	for range maxRounds {
		before := len(p.found)
		p.generalise(p.byFlow(), byOrder)
		if p.golden.ordered() && p.actual.ordered() {
			p.generalise(p.byOrder(), byOrder)
		} else {
			p.generalise(p.byWords(), byShape)
		}
		if len(p.found) == before {
			return
		}
	}
}

// open reports whether a layer may still get a partner without an equal value: it is not known what
// becomes of its like in other blocks.
func (p *search) open(n *node) bool {
	return n.free() && n.out != nil && !n.idle && !n.accounted() && !p.claimed[n.key()]
}
