package session

import (
	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// Port is one port of the reference, with what the candidate has for it.
type Port struct {
	Case, Step, Layer, Port string
	Seq                     int            // execution index in the golden
	Note                    string         // how it was joined
	Problem                 string         // joined by name, but nothing can be compared
	Mask                    bool           // an attention mask: what it allows counts
	Golden, Actual          *tensor.Tensor // after the views that make them alike; Actual is nil where only the golden has the port
	Golden64                *tensor.Tensor // the golden in float64, nil if there is none
	GoldenSide, ActualSide  *report.Side

	Criteria compare.Criteria // the fixture's
	Source   string           // where they were written
	Base     compare.Verdict  // by Criteria
	Agrees   bool             // within the noise floor
	Err      error            // the comparison failed

	row *report.Layer // as a test decided it; nil if none did
}

// portKey names a port of a fixture.
type portKey struct{ caseName, step, layer, port string }

func (p *Port) key() portKey { return portKey{p.Case, p.Step, p.Layer, p.Port} }

// Joined reports whether both sides have the port and can be compared.
func (p *Port) Joined() bool { return p.Actual != nil && p.Problem == "" }

// Judged reports whether the port decides over its layer: outputs and taps do, inputs are evidence of where an error came from.
func (p *Port) Judged() bool { return localise.RoleOf(p.Port) == localise.Output }

func (p *Port) judge(c compare.Criteria) (compare.Verdict, error) {
	return c.Judge(p.Golden, p.Actual, p.Golden64)
}

// agrees decides about the place of an error, apart from the tolerance that decides over the test.
func (p *Port) agrees() bool {
	r := p.Base.Result
	g, a := p.Golden.DType(), p.Actual.DType()
	switch {
	case r.BadNonFinite > 0:
	case !g.IsFloat() && !a.IsFloat():
		if r.Mismatches == 0 { // integers are compared exactly, whatever the tolerance
			return true
		}
	case r.WorstRow.RelL2 <= compare.Floor(g, a):
		return true
	}
	return p.sameMask()
}

// sameMask: the numbers differ, but what the mask allows does not.
func (p *Port) sameMask() bool {
	same, isMask := compare.SameMask(p.Golden, p.Actual)
	return p.Mask && isMask && same
}

// passes is the result by the fixture's tolerances.
func (p *Port) passes() bool { return p.Err == nil && (p.Base.Pass || p.Agrees && p.Mask) }
