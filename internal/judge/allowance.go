package judge

import (
	"fmt"

	"github.com/goparity/goparity/internal/compare"
)

// allowance is why a port whose numbers differ does not fail. A port has one at most, and rules set it by
// [Port.allow] alone.
type allowance struct {
	effect allows
	text   string // for people
}

// allows is what an allowance does.
type allows int

const (
	counts     allows = iota // nothing: a difference counts
	equivalent               // other numbers mean the same: what a mask allows, or rounding
	rewritten                // it is written otherwise, which what is made of it undoes; a test that asks for it by name fails
	unjudged                 // nothing tells what is right
)

// allow lets a port agree. What cannot be judged stays so, whatever else is found.
func (p *Port) allow(e allows, format string, args ...any) {
	p.Agrees = true
	if p.Unjudged() {
		return
	}
	p.allowance = allowance{e, fmt.Sprintf(format, args...)}
	if e == unjudged {
		p.Problem = ""
	}
}

// fail lets a port fail that its criteria let pass.
func (p *Port) fail(criterion, text string) {
	p.Agrees, p.allowance, p.Base.Pass = false, allowance{}, false
	p.Base.Violations = append(p.Base.Violations, compare.Violation{Criterion: criterion, Text: text})
}

// Unjudged reports whether nothing tells what is right of a port.
func (p *Port) Unjudged() bool { return p.allowance.effect == unjudged }

// rewritten reports whether a port is written otherwise, and what is made of it undoes that.
func (p *Port) rewritten() bool { return p.allowance.effect == rewritten }

// Passes reports whether the fixture's criteria hold, or a difference is allowed.
func (p *Port) Passes() bool {
	return p.Err == nil && (p.Base.Pass || p.allowance.effect != counts)
}
