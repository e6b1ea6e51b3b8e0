package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
)

// Decision is a port as criteria decided it: a row of the report.
type Decision struct {
	Row     *report.Layer
	port    *Port
	err     error
	crit    compare.Criteria
	verdict compare.Verdict
	vacuous string // what keeps the limits, too, where that is allowed; else ""
	outside int    // of a failure: elements outside the elementwise tolerance, or without one the noise

	mu sync.Mutex // guards Row.Detail: parallel tests share decisions
}

// Fails reports whether a port is outside the fixture's criteria, and decides nothing.
func (p *Port) Fails() bool { return p.consider(nil, "", false).Row.Status == report.StatusFail }

// Decide judges a port for the report: by c, which was written at source, or by the fixture's
// criteria if c is nil. Of several decisions the report shows the last, but never a pass in place of a
// failure. Where a test asks for the layer by its name, it does not pass by being written in another
// way that is undone after it.
func (p *Port) Decide(c compare.Criteria, source string, byName bool) *Decision {
	j := p.consider(c, source, byName)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.decided == nil || !p.decided.failed() || j.failed() {
		p.decided = j
	}
	return j
}

func (j *Decision) failed() bool {
	return j.Row.Status == report.StatusFail || j.Row.Status == report.StatusError
}

// decision returns what a test decided; nil if none did.
func (p *Port) decision() *Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.decided
}

// Decided reports whether a test decided an output of which there was something to compare.
func (c *Comparison) Decided() bool {
	return slices.ContainsFunc(c.Ports, func(p *Port) bool {
		j := p.decision()
		return j != nil && p.Judged() && j.Row.Status != report.StatusIgnored
	})
}

// consider judges a port without recording the decision.
func (p *Port) consider(c compare.Criteria, source string, byName bool) *Decision {
	j := &Decision{port: p, Row: p.newRow()}
	v, err := p.Base, p.Err
	crit := p.Criteria
	if c == nil {
		source = p.Source
	} else if p.Joined() {
		crit = c
		v, err = p.judge(crit)
	}
	is := func(status report.Status, note string) *Decision {
		j.Row.Status, j.Row.Note = status, note
		return j
	}
	if p.Problem != "" {
		err = errors.New(p.Problem)
	}
	switch {
	case p.Unjudged():
		return is(report.StatusIgnored, p.allowance.text)
	case err != nil:
		j.err = err
		return is(report.StatusError, err.Error())
	}
	j.Row.Standard = report.MetricsOf(v.Result, p.Golden)
	j.Row.Tolerance = report.ToleranceOf(crit, source)
	j.crit, j.verdict = crit, v
	if v.Result.N == 0 {
		return is(report.StatusIgnored, "empty: there is nothing to compare")
	}
	if v.Pass && (c != nil || !p.byDefault) {
		if j.vacuous, j.err = p.vacuous(crit, source); j.err != nil {
			return is(report.StatusError, j.err.Error())
		}
	}
	allowed := p.allowance.effect == equivalent || p.rewritten() && !byName
	also := strings.TrimPrefix(j.Row.Note+"; "+p.allowance.text, "; ")
	switch {
	case (v.Pass || allowed) && p.printed != nil && !p.printed.whole():
		return is(report.StatusIgnored, p.printed.text()+": they agree, which proves nothing about the rest")
	case v.Pass:
		return is(report.StatusPass, j.Row.Note)
	case allowed:
		j.Row.Benign = true
		return is(report.StatusPass, also)
	}
	for _, x := range v.Violations {
		j.Row.Violations = append(j.Row.Violations, x.Text)
	}
	if p.rewritten() {
		return is(report.StatusFail, also)
	}
	return is(report.StatusFail, j.Row.Note)
}

// row returns a copy of the row.
func (j *Decision) row() report.Layer {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *j.Row
}

func (p *Port) newRow() *report.Layer {
	row := &report.Layer{Layer: p.Layer, Port: p.Port, Kind: label.RoleOf(p.Port).String(), Case: p.Case, Step: p.Step, Order: p.Seq,
		Golden: p.GoldenSide, Actual: p.ActualSide, Note: p.Note, Quantisation: p.quantisation}
	if l := p.Local; l != nil && l.Opaque == "" {
		row.LocalError, row.Noise = new(report.Float(l.Error)), new(report.Float(l.Noise))
	}
	if in := p.Injected; in != nil {
		row.Injected = report.MetricsOf(in.result, p.Golden)
		if in.hasSplit {
			row.LocalL2, row.InheritedL2 = new(report.Float(in.local)), new(report.Float(in.inherited))
			row.LocalInheritedCosine = new(report.Float(in.angle))
		}
	}
	return row
}

// BadFraction returns the share of elements, 0 to 1, outside the elementwise tolerance. Without one
// it is 0 for a pass, and for a failure the share that the noise of the type cannot explain.
func (j *Decision) BadFraction() float64 {
	m := j.Row.Standard
	_, elementwise := j.crit.Tolerance()
	switch {
	case m == nil || m.N == 0:
		return 0
	case elementwise:
		return float64(m.Mismatches) / float64(m.N)
	}
	return float64(j.outside) / float64(m.N)
}

// Misuse returns the error of a criterion that has no meaning here, the fault of the test.
func (j *Decision) Misuse() error {
	if _, is := errors.AsType[*compare.MisuseError](j.err); is {
		return j.err
	}
	return nil
}

// Worse orders the ports of a layer: failures first, then by the worst row.
func (j *Decision) Worse(o *Decision) bool {
	a, b := j.Row, o.Row
	if fa, fb := a.Status != report.StatusPass, b.Status != report.StatusPass; fa != fb {
		return fa
	}
	return a.Standard != nil && (b.Standard == nil || a.Standard.RowRelL2 > b.Standard.RowRelL2)
}

// By notes the test that decided.
func (j *Decision) By(test string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Row.Test = test
}

// Explain adds to the row of a failing pair where it differs, how much, and what would pass. It
// reads the tensors again, many times slower than the comparison.
func (j *Decision) Explain() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Row.Status != report.StatusFail || j.err != nil || j.Row.Detail != nil {
		return
	}
	err := mapfile.Guard(func() error {
		j.outside = j.Row.Explain(j.port.Golden, j.port.Actual, j.crit, j.verdict, j.port.DType, j.port.Floor)
		return nil
	})
	if err != nil {
		j.Row.Detail = []string{err.Error()}
	}
}

// setNeighbours tells each port which ones are its like in the blocks before and after it.
func (c *Comparison) setNeighbours(allow bool) {
	last := map[localise.Key]*Port{} // by case, step and port, the layer without its numbers
	for _, p := range c.Ports {
		p.allowVacuous = allow
		if !p.Joined() || !p.Judged() {
			continue
		}
		kind := p.Key
		kind.Layer = label.Stars(p.Layer)
		if o := last[kind]; o != nil && slices.Equal(o.Actual.Shape(), p.Actual.Shape()) {
			o.neighbours, p.neighbours = append(o.neighbours, p), append(p.neighbours, o)
		}
		last[kind] = p
	}
}

// vacuous says which other tensor keeps limits that someone wrote at source, "" if none does. Unless that
// is allowed it is an error, a [*compare.MisuseError].
func (p *Port) vacuous(c compare.Criteria, source string) (what string, err error) {
	if !p.Judged() || p.printed != nil {
		return "", nil
	}
	var beside []compare.Beside
	for _, o := range p.neighbours {
		beside = append(beside, compare.Beside{Name: "the tensor of " + o.Layer, Tensor: o.Actual})
	}
	what, err = c.Vacuous(p.Golden, p.Actual, compare.References{Float64: p.Golden64, Encoded: p.Encoded, Encoding: p.DType}, beside)
	if err != nil || what == "" || p.allowVacuous {
		return what, err
	}
	return "", &compare.MisuseError{Msg: fmt.Sprintf("the limit of %s is vacuous: %s in place of the golden would pass, too. "+
		"Write a tighter one, or allow it: allow_vacuous in fixture.yaml, --allow-vacuous", source, what)}
}

// allowedVacuous is a note about the limits that were kept and say nothing.
func allowedVacuous(decisions []*Decision) []string {
	var names []string
	for _, j := range decisions {
		if j.vacuous != "" {
			names = append(names, fmt.Sprintf("%s %s (%s)", j.port.Layer, j.port.Port, j.vacuous))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"vacuous limits, which were allowed: what is no golden would pass, too: " + label.Few(names)}
}
