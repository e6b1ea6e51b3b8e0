package judge

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Port is one port of the reference, with what the candidate has for it and what was measured of the two.
type Port struct {
	localise.Key
	Seq int   // execution index in the golden
	at  int   // in Comparison.Ports
	of  *Case // whose it is

	// How the two are joined.
	Note                   string         // how, if not by name and shape
	Problem                string         // why a pair that was joined by name cannot be compared
	Mask                   bool           // an attention mask: what it allows counts
	Golden, Actual         *tensor.Tensor // in views that make them alike; Actual is nil if only the golden has it
	Golden64               *tensor.Tensor // the golden in float64, nil if there is none
	Encoded                *tensor.Tensor // the reference in the candidate's encoding, nil if there is none
	Unquantised, Unrounded *tensor.Tensor // the reference on the weights before quantisation, and without rounded inputs
	GoldenSide, ActualSide *report.Side
	ExpectedMissing        string         // why the candidate may well lack it, where only the golden has it; "" if nothing says so
	printed                *printed       // one side is a log
	entry                  *tensor.Tensor // the golden's tensor as it was recorded
	recorded               *tensor.Tensor // the candidate's; nil where it has none or several
	sides                  *sides         // what it was made of; nil where nothing can be compared
	rowNorm                func() float64 // the RMS norm of the golden's rows in all forward passes; nil of a single one
	passes                 []*Port        // it in all forward passes of its case
	neighbours             []*Port        // of the blocks before and after, in the same shape

	// What was measured, and what it was measured against.
	DType        tensor.DType     // whose limits apply, see typed; the integer type where a side has integers
	downcast     tensor.DType     // the candidate's, where it is coarser than what was asked for; else Invalid
	Criteria     compare.Criteria // the fixture's
	Source       string           // where they were written
	byDefault    bool             // no one wrote any
	allowVacuous bool
	measured     bool            // by what the encoding costs the reference
	Base         compare.Verdict // by Criteria
	Floor        compare.Limits  // the noise floor that decided whether the two agree
	Agrees       bool            // within the noise floor, or means the same
	Err          error           // the comparison failed
	float64Err   error           // why the float64 golden says nothing
	skipped      []bool          // rows that were left out; nil for none
	allowance    allowance       // why a difference does not count
	quantisation *report.Quantisation

	Local    *piece.Local // what replay says of its piece; nil where it was not replayed
	Injected *injected    // of the run on golden inputs, nil without one
	outliers bool         // single logits alone are off, which no rounding makes
	tied     bool         // it hangs on a choice that may come either way
	held     string       // why the recording is wrong, and not the model; "" where nothing shows that
	twin     string       // the layer whose output holds the same bytes, which the golden's does not; "" for none

	lacked  atomic.Bool // a test demands it, and the candidate has not got it
	mu      sync.Mutex
	decided *Decision // by a test; nil if none did
}

// Joined reports whether both sides have the port and can be compared.
func (p *Port) Joined() bool { return p.Actual != nil && p.Problem == "" }

// Judged reports whether the port decides over its layer: outputs and taps do, inputs are evidence
// of where an error came from.
func (p *Port) Judged() bool { return !label.IsInput(p.Port) }

// Comparable reports whether metrics of both sides are known.
func (p *Port) Comparable() bool { return p.Joined() && p.Err == nil }

// misfit reports whether the shapes do not fit where they must: of an output, or of token ids. An
// input of floats that does not fit is another tensor.
func (p *Port) misfit() bool {
	return p.Problem != "" && (p.Judged() || !p.Golden.DType().IsFloat())
}

// actualLayer is the candidate's layer: of several tensors that of the first.
func (p *Port) actualLayer() string {
	name, _, _ := strings.Cut(p.ActualSide.Name, " + ")
	layer, _ := label.Split(name)
	return layer
}

// CriteriaFunc returns what judges a port by the limits of a type, and where that was written, ""
// for the defaults of package compare.
type CriteriaFunc func(layer, port string, d tensor.DType) (compare.Criteria, string)

// measure compares the two sides of a joined port.
func (p *Port) measure(opt Options) {
	p.typed(p.of.judged.dtype, opt.Coarser)
	p.limit(opt.criteria())
	p.judgeBase()
	if p.Err == nil {
		p.Err = p.onlyFinite()
	}
	if p.Err == nil && p.Judged() && p.Golden.DType().IsFloat() && !p.Actual.DType().IsFloat() && !p.Base.Pass {
		p.Err = fmt.Errorf("it is %s, the golden's is %s: whole numbers in place of floats, which no rounding explains", p.Actual.DType(), p.Golden.DType())
	}
	if p.Err == nil {
		p.costOfWeights()
	}
}

// judgeBase judges by the port's own criteria. An error that is more than the encoding costs the
// reference may be twice that if the defaults, too, let it pass: noise has longer tails than the
// reference's run alone can show.
func (p *Port) judgeBase() {
	p.Base, p.Err = p.base(p.Criteria)
	if usual := compare.Default(p.DType); p.measured && p.Err == nil && !p.Base.Pass && p.Base.Result.Agrees(usual.Limits()) {
		usual[compare.Cost] = 2 * compare.MostCost
		if v, err := p.base(usual); err == nil && v.Pass {
			p.Base, p.Criteria = v, usual
			p.Source += ", twice that within the defaults"
		}
	}
	p.Agrees = p.Err == nil && (p.inFloor() || p.meansTheSame())
}

// base judges by the fixture's criteria. Without any, an output that is coarser than the encoding
// that was asked for fails, however near it is, unless its numbers need no more bits.
func (p *Port) base(c compare.Criteria) (compare.Verdict, error) {
	v, err := p.judge(c)
	if err == nil && p.byDefault && p.isDowncast(v.Result) {
		v.Pass = false
		v.Violations = append(v.Violations, compare.Violation{Criterion: "dtype", Got: p.downcast.Epsilon(), Want: p.DType.Epsilon(),
			Text: fmt.Sprintf("it is %s, coarser than the %s that the run was asked for", p.downcast, p.DType)})
	}
	return v, err
}

func (p *Port) isDowncast(r compare.Result) bool {
	return p.downcast != tensor.Invalid && p.Judged() && r.RelL2 > p.DType.Epsilon()
}

func (p *Port) judge(c compare.Criteria) (compare.Verdict, error) {
	return c.Judge(p.Golden, p.Actual, compare.References{Float64: p.Golden64, Encoded: p.Encoded, Encoding: p.DType, RowNorm: p.rowNorm})
}

// inFloor reports whether the two sides are within the noise floor. It decides where an error is;
// the criteria decide whether the test passes.
func (p *Port) inFloor() bool {
	r := p.Base.Result
	switch {
	case p.printed != nil || p.measured:
		return p.Base.Pass
	case p.isDowncast(r):
		return false
	case !p.Golden.DType().IsFloat() || !p.Actual.DType().IsFloat():
		return r.Mismatches == 0 // integers are compared exactly, whatever the tolerance
	}
	return r.Agrees(p.Floor)
}

// meansTheSame reports whether other numbers mean the same, as those of a mask.
func (p *Port) meansTheSame() bool {
	if p.printed != nil || p.isDowncast(p.Base.Result) {
		return false
	}
	if p.Mask || !p.Judged() { // a positional input does not say that it is a mask
		if n, isMask := vec.MasksDiffer(p.Golden, p.Actual); isMask && n == 0 {
			p.allow(equivalent, "the numbers differ, what the mask allows does not: golden %s, candidate %s",
				vec.MaskConstants(p.Golden), vec.MaskConstants(p.Actual))
			return true
		}
	}
	if !p.Judged() || !p.hidesAlike() {
		return false
	}
	p.allow(equivalent, "the elements that a mask hides are the same, golden %.6g, candidate %.6g, and the others agree",
		p.Base.Result.MaxAbs.Golden, p.Base.Result.MaxAbs.Actual)
	return true
}

// hidesAlike reports whether the port is a bias with a mask added, and all that is not hidden agrees.
func (p *Port) hidesAlike() bool {
	if r := p.Base.Result; r.InfGolden == 0 && !vec.Denied(-r.NormGolden) {
		return false // nothing is as low as what hides; this reads no tensor
	}
	g, a, ok := vec.AllowedByMasks(p.Golden, p.Actual)
	if !ok {
		return false
	}
	r, err := compare.Tensors(g, a, compare.Tolerance{})
	return err == nil && r.Agrees(compare.Floor(p.DType))
}

// limit sets the criteria and the noise floor. Where a float64 golden shows that the reference
// itself is further off than the defaults allow, its distance counts instead: no layer is accused
// of less than the reference does.
func (p *Port) limit(criteria CriteriaFunc) {
	p.Floor = compare.Floor(p.DType)
	p.Criteria, p.Source = criteria(p.Layer, p.Port, p.DType)
	if p.printed != nil {
		p.Criteria, p.Source = p.printed.criteria(p.DType), "the decimals of the log"
	}
	if p.Source != "" {
		return
	}
	p.byDefault, p.Source = true, "default for "+p.DType.String()
	if p.measurable() {
		p.Criteria = compare.Criteria{compare.Cost: compare.MostCost}
		p.Source = fmt.Sprintf("%d × what %s costs the reference%s", compare.MostCost, p.DType, madeBy(p.of.Encoded))
		p.measured = true
	}
	if p.Golden64 == nil || !p.DType.IsFloat() {
		return
	}
	own, err := compare.Own(p.Golden, p.Golden64)
	if err != nil {
		p.float64Err = err
		return
	}
	noise := compare.Limits{RelL2: noiseRatio * own.RelL2, RowRelL2: noiseRatio * own.RowRelL2}
	if wider := p.Floor.Max(noise); wider != p.Floor {
		p.Floor = wider
		p.Criteria, p.measured = wider.Max(p.Criteria.Limits()).Criteria(), false
		p.Source = fmt.Sprintf("%d × the reference's own distance from float64", noiseRatio)
	}
}

// floor is the noise floor of the port, that of its type where nothing was measured.
func (p *Port) floor() compare.Limits { return p.Floor.Max(compare.Floor(p.DType)) }

// measurable reports whether the reference was run in the encoding that judges.
func (p *Port) measurable() bool {
	return p.Encoded != nil && p.printed == nil && compare.Has16Bits(p.DType) && slices.Equal(p.Encoded.Shape(), p.Golden.Shape())
}

// evidence returns the port as hypotheses see it: whole tensors in the golden's own shape, padding
// rows included.
func (p *Port) evidence() *diagnose.Port {
	d := &diagnose.Port{Case: p.Case, Step: p.Step, Layer: p.Layer, Port: p.Port, Seq: p.Seq, Golden: p.Golden, Agrees: p.Agrees, Floor: p.Floor}
	if p.Problem != "" {
		d.Misfit = p.recorded
	}
	if p.sides == nil || p.Unjudged() {
		return d
	}
	if f, err := p.sides.frame(); err == nil {
		d.Golden, d.Actual, d.PadRows = f.golden, f.actual, f.pad
		if f.pad == nil && len(p.skipped) == d.Rows() {
			d.PadRows = p.skipped
		}
	}
	if in := p.Injected; in != nil {
		if f, err := in.sides.frame(); err == nil && slices.Equal(f.golden.Shape(), d.Golden.Shape()) {
			d.Injected, d.InjectedAgrees = f.actual, in.agrees
		}
	}
	return d
}

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
