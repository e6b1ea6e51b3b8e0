package session

import (
	"fmt"
	"sync"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/dtype"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mask"
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

	printed *printed // one side is a log

	Criteria  compare.Criteria // the fixture's
	Source    string           // where they were written
	byDefault bool             // nobody wrote any
	Base      compare.Verdict  // by Criteria
	Agrees    bool             // within the noise floor, or means the same
	Benign    string           // why a difference does not count
	Floor     compare.Limits   // the noise floor that decided
	Injected  *injected        // of the run on golden inputs, nil without one
	Err       error            // the comparison failed

	frame func() (frame, error) // both sides for hypotheses; nil where nothing can be compared

	mu      sync.Mutex
	decided *Judgement // by a test; nil if none did
}

// portKey names a port of a fixture.
type portKey struct{ caseName, step, layer, port string }

func (p *Port) key() portKey { return portKey{p.Case, p.Step, p.Layer, p.Port} }

func (c *Comparison) byKey() map[portKey]*Port {
	ports := make(map[portKey]*Port, len(c.Ports))
	for _, p := range c.Ports {
		ports[p.key()] = p
	}
	return ports
}

// Joined reports whether both sides have the port and can be compared.
func (p *Port) Joined() bool { return p.Actual != nil && p.Problem == "" }

// misfit: the shapes do not fit where they must, of an output or of token ids. An input of floats that does not fit is another one.
func (p *Port) misfit() bool {
	return p.Problem != "" && (p.Judged() || !p.Golden.DType().IsFloat())
}

// Judged reports whether the port decides over its layer: outputs and taps do, inputs are evidence of where an error came from.
func (p *Port) Judged() bool { return !label.IsInput(p.Port) }

func (p *Port) judge(c compare.Criteria) (compare.Verdict, error) {
	return c.Judge(p.Golden, p.Actual, p.Golden64)
}

// agrees decides about the place of an error, apart from the tolerance that decides over the test.
func (p *Port) agrees() bool {
	r := p.Base.Result
	switch {
	case p.printed != nil:
		return p.Base.Pass
	case !p.Golden.DType().IsFloat() && !p.Actual.DType().IsFloat():
		if r.Mismatches == 0 { // integers are compared exactly, whatever the tolerance
			return true
		}
	case r.Agrees(p.Floor):
		return true
	}
	if p.Mask || !p.Judged() { // a positional input does not say that it is a mask
		if same, isMask := mask.Same(p.Golden, p.Actual); isMask && same {
			p.Benign = "the numbers differ, what the mask allows does not"
		}
	}
	return p.Benign != ""
}

// decision is what a test decided, nil if none did.
func (p *Port) decision() *Judgement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.decided
}

// passes is the result by the fixture's tolerances.
func (p *Port) passes() bool { return p.Err == nil && (p.Base.Pass || p.Benign != "") }

// noiseRatio is how many times the reference's own distance from float64 still counts as noise.
const noiseRatio = 3

// limits sets the criteria and the noise floor. Where a float64 golden shows that the reference itself is further off than the defaults
// allow, its distance counts instead: nobody is accused of less than the reference does.
func (p *Port) limits(criteria func(layer, port string, g, a tensor.DType) (compare.Criteria, string)) {
	g, a := p.Golden.DType(), p.Actual.DType()
	p.Floor = compare.Floor(g, a)
	p.Criteria, p.Source = criteria(p.Layer, p.Port, g, a)
	if p.printed != nil {
		p.Criteria, p.Source = p.printed.criteria(), "the decimals of the log"
	}
	if p.Source != "" {
		return
	}
	p.byDefault, p.Source = true, "default for "+dtype.Coarser(g, a).String()
	if p.Golden64 == nil || !g.IsFloat() {
		return
	}
	own, err := compare.Tensors(p.Golden64, p.Golden, compare.Tolerance{})
	if err != nil || own.BadNonFinite > 0 {
		return
	}
	noise := compare.Limits{RelL2: noiseRatio * own.RelL2, RowRelL2: noiseRatio * own.WorstRow.RelL2}
	if wider := p.Floor.Max(noise); wider != p.Floor {
		p.Floor = wider
		p.Criteria = noise.Max(p.Criteria.Limits()).Criteria()
		p.Source = fmt.Sprintf("%d × the reference's own distance from float64", noiseRatio)
	}
}
