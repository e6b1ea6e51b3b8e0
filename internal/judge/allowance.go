package judge

import (
	"fmt"

	"github.com/goparity/goparity/internal/compare"
)

// Allowance is why a port whose numbers differ does not fail. A port has one at most, and rules set it by
// [Port.allow] alone.
type Allowance struct {
	Effect Effect
	Text   string // for people
}

// Effect is what an allowance does.
type Effect int

const (
	Counts     Effect = iota // nothing: a difference counts
	Equivalent               // other numbers mean the same: what a mask allows, or rounding
	Rewritten                // it is written otherwise, which what is made of it undoes; a test that asks for it by name fails
	Unjudged                 // nothing tells what is right
)

// allow lets a port agree. What cannot be judged stays so, whatever else is found.
func (p *Port) allow(e Effect, format string, args ...any) {
	p.Agrees = true
	if p.Unjudged() {
		return
	}
	p.Allowance = Allowance{e, fmt.Sprintf(format, args...)}
	if e == Unjudged {
		p.Problem = ""
	}
}

// fail lets a port fail that its criteria let pass.
func (p *Port) fail(criterion, text string) {
	p.Agrees, p.Allowance, p.Base.Pass = false, Allowance{}, false
	p.Base.Violations = append(p.Base.Violations, compare.Violation{Criterion: criterion, Text: text})
}

// Unjudged reports whether nothing tells what is right of a port.
func (f *Figures) Unjudged() bool { return f.Allowance.Effect == Unjudged }

// Passes reports whether the fixture's criteria hold, or a difference is allowed.
func (f *Figures) Passes() bool {
	return f.Err == nil && (f.Base.Pass || f.Allowance.Effect != Counts)
}
