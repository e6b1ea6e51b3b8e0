package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// outcome is what figures say of a criterion.
type outcome int

const (
	holds outcome = iota
	unknown
	broken
)

// Rejudge judges the figures of a report by other criteria, which replace all that judged before. Only what the figures tell for certain is
// decided; a row of which they do not is an error, whose note says which criterion it is. t may have atol and rtol, rel_l2, row_rel_l2, cosine,
// mse and snr_db; a criterion that needs the tensors (ulp, kl, noise, top_k) is refused.
//
// What was ignored or missing stays so, and so does the place of the first divergence, which no tolerance decided. Inherited rows
// stay inherited as long as the layer that they have their error from fails.
func Rejudge(r *Report, t Tolerance) (*Report, error) {
	if t.ULP != nil || t.KL != nil || t.Noise != nil || t.TopK > 0 {
		return nil, errors.New("ulp, kl, noise and top_k cannot be judged from report.json: they need the tensors, compare the dumps again")
	}
	if t.Atol == nil && t.Rtol == nil && t.RelL2 == nil && t.RowRelL2 == nil && t.Cosine == nil && t.MSE == nil && t.SNR == nil {
		return nil, errors.New("no criterion is given: nothing would be judged")
	}
	for _, f := range []*Float{t.Atol, t.Rtol, t.RelL2, t.RowRelL2, t.MSE} {
		if f != nil && (!(*f >= 0) || math.IsInf(float64(*f), 0)) {
			return nil, fmt.Errorf("a limit of %v: want a number ≥ 0", *f)
		}
	}
	if t.Cosine != nil && !(*t.Cosine >= -1 && *t.Cosine <= 1) {
		return nil, fmt.Errorf("a cosine of %v: want a number from -1 to 1", *t.Cosine)
	}
	if t.SNR != nil && (math.IsNaN(float64(*t.SNR)) || math.IsInf(float64(*t.SNR), 0)) {
		return nil, fmt.Errorf("a signal-to-noise ratio of %v dB: want a finite number", *t.SNR)
	}
	out := *r
	out.Layers = slices.Clone(r.Layers)
	failed, unsure := map[string]bool{}, 0
	dropped := map[string]int{}
	judge := func(l *Layer) outcome {
		result, why := judgeFigures(l, t)
		for _, name := range l.Tolerance.needTensors() {
			dropped[name]++
		}
		l.judgedBy(&t)
		if result == broken {
			l.Violations = why
		}
		if result == unknown {
			l.Status, l.Note = StatusError, strings.Join(why, "; ")
			unsure++
		}
		return result
	}
	for i := range out.Layers {
		l := &out.Layers[i]
		if l.Kind == PortInput || !l.compared() || l.Standard == nil || l.Status == StatusInherited {
			continue
		}
		switch judge(l) {
		case holds:
			l.Status = StatusPass
		case broken:
			l.Status = StatusFail
			failed[l.Layer] = true
		}
	}
	for i := range out.Layers {
		l := &out.Layers[i]
		if l.Status != StatusInherited || l.Standard == nil || failed[l.Blame] {
			continue
		}
		if result := judge(l); result != unknown {
			l.Status, l.Blame = []Status{holds: StatusPass, broken: StatusFail}[result], ""
		}
	}
	out.Verdict = Pass
	for i := range out.Layers {
		switch l := &out.Layers[i]; {
		case l.Kind == PortInput:
		case l.Status == StatusFail || l.Status == StatusInherited || l.Status == StatusMissing:
			out.Verdict = Fail
		case l.Status == StatusError && out.Verdict == Pass:
			out.Verdict, out.Error = Error, "some rows cannot be re-judged from their figures"
		}
	}
	if out.Verdict == Fail {
		out.Error = ""
	} else {
		out.FirstDivergence, out.Kind, out.Frontier, out.Causes = nil, "", nil, nil
	}
	for i := range out.Layers {
		if l := &out.Layers[i]; l.Kind == PortInput && l.Standard != nil && (l.compared() || l.Status == StatusError) {
			out.judgeInput(l, t)
		}
	}
	out.Notes = append([]string{"re-judged from the figures of report.json by " + (&Layer{Tolerance: &t}).limit()}, r.Notes...)
	for _, name := range []string{"ulp", "kl", "noise", "top_k"} {
		if n := dropped[name]; n > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%s, by which %s had been judged, cannot be re-judged: it needs the tensors", name, count(n, "row")))
		}
	}
	if unsure > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%s cannot be re-judged from the figures: compare the dumps again", count(unsure, "row")))
	}
	if out.Verdict == Pass && Count(out.Layers).Compared == 0 {
		out.Verdict, out.Error = Error, "nothing was compared"
	}
	out.Summary = Count(out.Layers)
	return &out, nil
}

// judgeInput: an input is evidence, and fails nothing by itself.
func (r *Report) judgeInput(l *Layer, t Tolerance) {
	result, why := judgeFigures(l, t)
	l.judgedBy(&t)
	switch {
	case result == holds:
		l.Status = StatusPass
	case result == broken && r.Verdict == Fail:
		l.Status, l.Violations = StatusFail, why
	default:
		l.Status, l.Note = StatusIgnored, "differs, but no output does: "+strings.Join(why, "; ")
	}
}

// judgedBy replaces the tolerance; what had been counted by the old one stays so.
func (l *Layer) judgedBy(t *Tolerance) {
	l.Counted = l.countedBy()
	l.Tolerance, l.Violations, l.Detail = t, nil, nil
}

// countedBy is the tolerance by which the mismatches were counted.
func (l *Layer) countedBy() *Tolerance {
	switch {
	case l.Counted != nil:
		return l.Counted
	case l.Tolerance != nil:
		return l.Tolerance
	}
	return &Tolerance{}
}

// needTensors lists the criteria that figures cannot decide.
func (t *Tolerance) needTensors() (names []string) {
	if t == nil {
		return nil
	}
	for _, c := range []struct {
		name  string
		asked bool
	}{{"ulp", t.ULP != nil}, {"kl", t.KL != nil}, {"noise", t.Noise != nil}, {"top_k", t.TopK > 0}} {
		if c.asked {
			names = append(names, c.name)
		}
	}
	return names
}

// judgeFigures applies criteria to the standard run's figures of a row. why says what is broken, or else what is not known.
func judgeFigures(l *Layer, t Tolerance) (result outcome, why []string) {
	return judgeMetrics(l.Standard, l.countedBy(), l.integers(), t)
}

// judgeMetrics applies criteria to figures whose mismatches were counted by the tolerance counted (nil: for equality).
func judgeMetrics(m *Metrics, counted *Tolerance, integers bool, t Tolerance) (result outcome, why []string) {
	var open []string
	say := func(o outcome, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		switch o {
		case broken:
			result, why = broken, append(why, text)
		case unknown:
			open = append(open, text)
		}
	}
	most := func(name string, got Float, limit *Float) {
		if limit != nil && !(got <= *limit) {
			say(broken, "%s is %s, at most %s is asked", name, num(got), num(*limit))
		}
	}
	if m.BadNonFinite > 0 {
		say(broken, "%s", m.nonFinite())
	}
	if t.Atol != nil || t.Rtol != nil {
		atol, rtol := value(t.Atol), value(t.Rtol)
		switch within(m, counted, integers, atol, rtol) {
		case broken:
			say(broken, "max |a-g| is %s: not within atol %g + rtol %g·|golden|", num(m.MaxAbs), atol, rtol)
		case unknown:
			say(unknown, "max |a-g| is %s: the figures do not tell whether all is within atol %g + rtol %g·|golden|", num(m.MaxAbs), atol, rtol)
		}
	}
	most("relative L2", m.RelL2, t.RelL2)
	row := t.RowRelL2
	if row == nil {
		row = t.RelL2
	}
	most("relative L2 of the worst row", m.RowRelL2, row)
	most("mean squared error", m.MSE, t.MSE)
	if t.SNR != nil && !(m.SNR >= *t.SNR) {
		say(broken, "signal-to-noise ratio is %s dB, at least %s is asked", num(m.SNR), num(*t.SNR))
	}
	if t.Cosine != nil {
		// The cosine of a row is not among the figures, but 1 − cosine of any row, weighted as compare.Criteria has it, is at most 2·row_rel_l2².
		switch limit := 1 - float64(*t.Cosine); {
		case float64(m.CosineDistance) > limit:
			say(broken, "1-cosine is %s, at most %s is asked", num(m.CosineDistance), num(Float(limit)))
		case 2*float64(m.RowRelL2)*float64(m.RowRelL2) > limit:
			say(unknown, "the cosine of the worst row is not among the figures")
		}
	}
	if result != broken && len(open) > 0 {
		return unknown, open
	}
	return result, why
}

// within decides |a − g| ≤ atol + rtol·|g| where the figures tell.
func within(m *Metrics, counted *Tolerance, integers bool, atol, rtol float64) outcome {
	if integers { // always compared exactly
		if m.Mismatches > 0 {
			return broken
		}
		return holds
	}
	countedAtol, countedRtol := 0.0, 0.0
	if counted != nil {
		countedAtol, countedRtol = value(counted.Atol), value(counted.Rtol)
	}
	outside := func(g, a Float) bool {
		return math.Abs(float64(a)-float64(g)) > atol+rtol*math.Abs(float64(g))
	}
	maxAbs, maxRel := float64(m.MaxAbs), float64(m.MaxRel)
	switch {
	case m.Mismatches > 0 && atol <= countedAtol && rtol <= countedRtol:
		return broken
	case m.MaxAbsIndex != nil && outside(m.MaxAbsGolden, m.MaxAbsActual), m.MaxRelIndex != nil && outside(m.MaxRelGolden, m.MaxRelActual):
		return broken
	case m.Mismatches == 0 && atol >= countedAtol && rtol >= countedRtol:
		return holds
	case maxAbs <= atol:
		return holds
	case maxRel*(1+1e-12) <= rtol && rtol*1e-10 <= atol: // the denominator of max_rel is 1e-10 at least
		return holds
	}
	return unknown
}

// integers reports whether neither side has floats.
func (l *Layer) integers() bool {
	isFloat := func(s *Side) bool {
		if s == nil {
			return true
		}
		d, err := tensor.ParseDType(s.DType)
		return err != nil || d.IsFloat()
	}
	return !isFloat(l.Golden) && !isFloat(l.Actual)
}

func value(f *Float) float64 {
	if f == nil {
		return 0
	}
	return float64(*f)
}
