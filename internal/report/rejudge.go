package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
)

// outcome is what figures say of a criterion.
type outcome int

const (
	holds outcome = iota
	unknown
	broken
)

// Rejudge judges the figures of a report by other criteria, which replace all that judged before.
// Only what the figures tell for certain is decided; a row that they do not decide is an error,
// whose note names the criterion. A criterion that needs the tensors is refused.
//
// What was ignored or missing stays so, and so does the place of the first divergence, which no
// tolerance decided. Inherited rows stay inherited as long as the layer that made their error
// fails.
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
	// What is wrong besides the figures stays wrong, whatever the criteria.
	beyond := r.Verdict == Fail && placeOf(r.stage()) < placeOf(StageTensors) || !r.holds() && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.failing() })
	out := *r
	out.Layers = slices.Clone(r.Layers)
	j := rejudging{by: ToleranceOf(c, source), failed: map[string]bool{}}
	j.outputs(out.Layers)
	out.decide()
	for i := range out.Layers {
		if l := &out.Layers[i]; l.IsInput() && !l.Benign && l.Standard != nil && (l.compared() || l.Status == StatusError) {
			j.input(l, out.Verdict == Fail)
		}
	}
	if beyond && out.holds() {
		out.Verdict, out.Error = r.Verdict, r.Error
		out.Kind, out.FirstDivergence = r.Kind, r.FirstDivergence
	}
	out.SetServing(out.Serving) // which the rows do not excuse
	notes := []string{"re-judged from the figures of report.json by " + (&Layer{Tolerance: j.by}).Limit()}
	if j.unsure > 0 {
		notes = append(notes, count(j.unsure, "row")+" cannot be re-judged from the figures: compare the dumps again")
	}
	out.Notes = append(notes, r.Notes...)
	if out.holds() && Count(out.Layers).Compared == 0 {
		out.Verdict, out.Error = Error, "nothing was compared"
	}
	out.Summary = Count(out.Layers)
	return &out, nil
}

// rejudging is what is learnt while the rows of a report are judged again.
type rejudging struct {
	by     *Tolerance
	failed map[string]bool // layers
	unsure int             // rows that their figures do not decide
}

// outputs judges the rows that decide by themselves, then those that a layer had excused which does not fail any more.
func (j *rejudging) outputs(rows []Layer) {
	for _, excused := range []bool{false, true} {
		for i := range rows {
			l := &rows[i]
			if l.IsInput() || l.Benign || !l.compared() || l.Standard == nil || (l.Status == StatusInherited) != excused || excused && j.failed[l.Blame] {
				continue
			}
			switch result, why := j.judge(l); result {
			case holds:
				l.Status, l.Blame = StatusPass, ""
			case broken:
				l.Status, l.Blame, l.Violations = StatusFail, "", why
				j.failed[l.Layer] = j.failed[l.Layer] || !excused
			default:
				l.Status, l.Note = StatusError, strings.Join(why, "; ")
				j.unsure++
			}
		}
	}
}

// input judges an input: it is evidence, and fails nothing by itself.
func (j *rejudging) input(l *Layer, fails bool) {
	switch result, why := j.judge(l); {
	case result == holds:
		l.Status = StatusPass
	case result == broken && fails:
		l.Status, l.Violations = StatusFail, why
	default:
		l.Status, l.Note = StatusIgnored, "differs, but no output does: "+strings.Join(why, "; ")
	}
}

// judge judges a row by the new tolerance; what had been counted by the old one stays so.
func (j *rejudging) judge(l *Layer) (result outcome, why []string) {
	if l.Counted == nil {
		if l.Counted = l.Tolerance; l.Counted == nil {
			l.Counted = &Tolerance{}
		}
	}
	l.Tolerance, l.Violations, l.Detail = j.by, nil, nil
	return l.judge(l.Standard, l.Counted, j.by)
}

// decide sets the verdict by the rows.
func (r *Report) decide() {
	r.Verdict = r.covered()
	for i := range r.Layers {
		switch l := &r.Layers[i]; {
		case l.IsInput():
		case l.Status == StatusFail || l.Status == StatusInherited || l.Status == StatusMissing:
			r.Verdict = Fail
		case l.Status == StatusError && r.holds():
			r.Verdict, r.Error = Error, "some rows cannot be re-judged from their figures"
		}
	}
	if r.Verdict == Fail {
		r.Error = ""
	} else {
		r.FirstDivergence, r.Kind, r.Frontier, r.Causes = nil, "", nil, nil
	}
}

// judge applies criteria to figures of a row, whose mismatches were counted by another tolerance. why says what is
// broken, or else what is not known.
func (l *Layer) judge(m *Metrics, counted, by *Tolerance) (result outcome, why []string) {
	was, _ := counted.Criteria.Tolerance()
	violations, open, err := by.Criteria.Recall(m.result(), was, l.integers())
	switch {
	case err != nil:
		return unknown, []string{err.Error()}
	case len(violations) > 0:
		for _, v := range violations {
			why = append(why, v.Text)
		}
		return broken, why
	case len(open) > 0:
		return unknown, open
	}
	return holds, nil
}
