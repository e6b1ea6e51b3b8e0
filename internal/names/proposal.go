package names

import (
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/match"
)

// Proposal is what Propose found.
type Proposal struct {
	Rules []Rule
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

// Rule is a proposed rule, and what speaks for it.
type Rule struct {
	match.Rule
	Sure     string  // Certain, Likely or Possible
	Equal    int     // pairs of layers whose outputs are equal
	Pairs    int     // all pairs that the rule joins
	Distance float64 // the largest relative L2 of the equal ones

	at int // place in the golden's order
}

// How sure a rule is.
const (
	Certain  = "certain"  // all that it joins holds equal values
	Likely   = "likely"   // some of what it joins does, the rest is named alike
	Possible = "possible" // no value agrees: by the order, the shapes and the names
)

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

// proposing is the search.
type proposing struct {
	golden, actual *side
	opt            match.Options
	padding        layout.Padding
	tolerance      float64 // up to which relative L2 values are equal
	blocks         bool    // both sides have numbered blocks
	named          map[string][]string
	found          []finding
	fused          []fusion
	turned         map[[2]*layer]match.Rule // pairs that hold one value in two layouts
	excluded       map[string]bool          // keys of layers that have no partner
	parallel       map[*layer]*layer        // pairs that only the order speaks for, among layers that were given the same
	claimed        map[string]bool          // keys of layers that have partners in some blocks
}

// Propose searches two runs for layers that are one. tolerance is the relative L2 up to which values
// are equal. The error is that of a rule or pattern of opt.
func Propose(golden, actual []Port, opt match.Options, tolerance float64) (*Proposal, error) {
	padding, err := layout.NewPadding(opt.PadMask)
	if err != nil {
		return nil, err
	}
	p := &proposing{golden: newSide(golden, opt.GoldenByName, opt.PadMask), actual: newSide(actual, opt.ActualByName, opt.PadMask),
		opt: opt, padding: padding, tolerance: tolerance, turned: map[[2]*layer]match.Rule{}, excluded: map[string]bool{}, claimed: map[string]bool{},
		parallel: map[*layer]*layer{}}
	p.blocks = anyNumbered(p.golden) && anyNumbered(p.actual)
	g, a := matchPorts(golden), matchPorts(actual)
	p.named = map[string][]string{}
	if r, err := match.Runs(g, a, opt); err == nil { // ambiguous names are what values may tell apart
		p.named = r.Layers
	}
	p.equate()
	out := &Proposal{}
	if out.Foreign = p.foreign(); out.Foreign != "" {
		return out, nil
	}
	p.generalise(p.byClasses(false), byValue)
	p.generalise(p.byClasses(true), byValue)
	p.byNames()
	p.join()
	p.turn()
	p.carry()
	p.rules(out, g, a)
	return out, nil
}
