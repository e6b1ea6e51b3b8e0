package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
)

// Rejudge judges the figures of a report by other criteria, which replace all that judged before.
// Only what the figures tell for certain is decided; a row that they do not decide is an error,
// whose note names the criterion. A criterion that needs the tensors is refused.
//
// What was ignored or missing stays so, and so does the place of the first divergence, which no
// tolerance decided. Inherited rows stay inherited as long as the layer that made their error
// fails. Inputs are evidence: one that failed is ignored where no output fails.
func Rejudge(r *Report, c compare.Criteria, source string) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(r.Paths)+len(r.Generations) > 0 {
		return nil, errors.New("figures of layers judge no execution path and no token again: change the tolerances in fixture.yaml and run the tests again")
	}
	for k := range c.All() {
		if !k.Recorded {
			return nil, fmt.Errorf("%s cannot be judged from report.json: it needs the tensors, compare the dumps "+
				"again", k.Key)
		}
	}
	out := *r
	out.Layers = slices.Clone(r.Layers)
	by := ToleranceOf(c, source)
	unsure := out.rejudgeRows(by)
	// What is wrong besides the figures stays wrong, whatever the criteria.
	beyond := r.Verdict == Fail && placeOf(r.stage()) < placeOf(StageTensors) ||
		!r.holds() && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.Status.failing() })
	switch out.decide(); {
	case beyond && out.holds():
		out.Verdict, out.Error, out.Kind, out.FirstDivergence = r.Verdict, r.Error, r.Kind, r.FirstDivergence
	case out.holds() && out.vacuous():
		out.Verdict, out.Error = Error, "nothing was compared"
	}
	out.SetServing(out.Serving) // which the rows do not excuse
	notes := []string{"re-judged from the figures of report.json by " + (&Layer{Tolerance: by}).Limit()}
	if unsure > 0 {
		notes = append(notes, count(unsure, "row")+" cannot be re-judged from the figures: compare the dumps again")
	}
	out.Notes = append(notes, r.Notes...)
	out.Summary = Count(out.Layers)
	return &out, nil
}

// rejudgeRows judges the outputs that decide by themselves, then those that a layer had excused which does not fail any
// more. It returns how many their figures do not decide.
func (r *Report) rejudgeRows(by *Tolerance) (unsure int) {
	failed := map[string]bool{} // layers
	for _, excused := range []bool{false, true} {
		for _, l := range r.rows(func(l *Layer) bool {
			return !l.IsInput() && !l.Benign && l.compared() && l.Standard != nil && l.inherits() == excused
		}) {
			if excused && failed[l.Blame] {
				continue
			}
			l.Counted = cmp.Or(l.Counted, l.Tolerance, &Tolerance{}) // what counted its mismatches stays so
			l.Tolerance, l.Detail = by, nil
			l.Status, l.Violations = l.judge(l.Standard, l.Counted, by)
			switch l.Status {
			case StatusError:
				l.Note, l.Violations = strings.Join(l.Violations, "; "), nil
				unsure++
				continue
			case StatusFail:
				failed[l.Layer] = failed[l.Layer] || !excused
			}
			l.Blame = ""
		}
	}
	return unsure
}

// decide sets the verdict by the rows.
func (r *Report) decide() {
	failing := r.rows((*Layer).failing)
	outputs := slices.DeleteFunc(slices.Clone(failing), (*Layer).IsInput)
	switch {
	case slices.ContainsFunc(outputs, func(l *Layer) bool { return l.Status != StatusError }):
		r.Verdict, r.Error = Fail, ""
		return
	case len(outputs) > 0:
		r.Verdict, r.Error = Error, "some rows cannot be re-judged from their figures"
	default:
		r.Verdict = r.covered()
	}
	r.FirstDivergence, r.Kind, r.Frontier, r.Causes = nil, "", nil, nil
	for _, l := range failing {
		if l.IsInput() {
			l.Status, l.Note = StatusIgnored, "differs, but no output does"
		}
	}
}

// judge applies criteria to figures of a row, whose mismatches were counted by another tolerance: pass, fail and what is
// broken, or error and what is not known.
func (l *Layer) judge(m *Metrics, counted, by *Tolerance) (Status, []string) {
	was, _ := counted.Criteria.Tolerance()
	violations, open, err := by.Criteria.Recall(m.result(), was, l.integers())
	switch {
	case err != nil:
		return StatusError, []string{err.Error()}
	case len(violations) > 0:
		var why []string
		for _, v := range violations {
			why = append(why, v.Text)
		}
		return StatusFail, why
	case len(open) > 0:
		return StatusError, open
	}
	return StatusPass, nil
}
