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
	t := ToleranceOf(c, source)
	// What is wrong besides the figures stays wrong, whatever the criteria.
	beyond := r.Verdict == Fail && placeOf(r.stage()) < placeOf(StageTensors) || !r.holds() && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.failing() })
	out := *r
	out.Layers = slices.Clone(r.Layers)
	j := rejudging{by: t, failed: map[string]bool{}, dropped: map[*compare.Criterion]int{}}
	j.outputs(out.Layers)
	j.inherited(out.Layers)
	out.decide()
	for i := range out.Layers {
		if l := &out.Layers[i]; l.IsInput() && !l.Benign && l.Standard != nil && (l.compared() || l.Status == StatusError) {
			out.judgeInput(l, t)
		}
	}
	if beyond && out.holds() {
		out.Verdict, out.Error = r.Verdict, r.Error
		out.Kind, out.FirstDivergence = r.Kind, r.FirstDivergence
	}
	out.SetServing(out.Serving) // which the rows do not excuse
	out.Notes = append(j.notes(), r.Notes...)
	if out.holds() && Count(out.Layers).Compared == 0 {
		out.Verdict, out.Error = Error, "nothing was compared"
	}
	out.Summary = Count(out.Layers)
	return &out, nil
}

// rejudging is what is learnt while the rows of a report are judged again.
type rejudging struct {
	by      *Tolerance
	failed  map[string]bool            // layers
	unsure  int                        // rows that their figures do not decide
	dropped map[*compare.Criterion]int // criteria that had judged rows and need the tensors
}

// outputs judges the rows that decide by themselves.
func (j *rejudging) outputs(rows []Layer) {
	for i := range rows {
		l := &rows[i]
		if l.IsInput() || l.Benign || !l.compared() || l.Standard == nil || l.Status == StatusInherited {
			continue
		}
		switch j.row(l) {
		case holds:
			l.Status = StatusPass
		case broken:
			l.Status = StatusFail
			j.failed[l.Layer] = true
		}
	}
}

// inherited judges the rows that had been excused by a layer that does not fail any more.
func (j *rejudging) inherited(rows []Layer) {
	for i := range rows {
		l := &rows[i]
		if l.Status != StatusInherited || l.Standard == nil || j.failed[l.Blame] {
			continue
		}
		if result := j.row(l); result != unknown {
			l.Status, l.Blame = []Status{holds: StatusPass, broken: StatusFail}[result], ""
		}
	}
}

func (j *rejudging) row(l *Layer) outcome {
	result, why := l.judge(l.Standard, l.countedBy(), j.by)
	if l.Tolerance != nil {
		for c := range l.Tolerance.Criteria {
			if !c.Recorded {
				j.dropped[c]++
			}
		}
	}
	l.judgedBy(j.by)
	switch result {
	case broken:
		l.Violations = why
	case unknown:
		l.Status, l.Note = StatusError, strings.Join(why, "; ")
		j.unsure++
	}
	return result
}

func (j *rejudging) notes() []string {
	notes := []string{"re-judged from the figures of report.json by " + (&Layer{Tolerance: j.by}).Limit()}
	for _, c := range compare.Table() {
		if n := j.dropped[c]; n > 0 {
			notes = append(notes,
				fmt.Sprintf("%s, by which %s had been judged, cannot be re-judged: it needs the tensors", c.Key,
					count(n, "row")))
		}
	}
	if j.unsure > 0 {
		notes = append(notes,
			fmt.Sprintf("%s cannot be re-judged from the figures: compare the dumps again", count(j.unsure, "row")))
	}
	return notes
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

// judgeInput: an input is evidence, and fails nothing by itself.
func (r *Report) judgeInput(l *Layer, t *Tolerance) {
	result, why := l.judge(l.Standard, l.countedBy(), t)
	l.judgedBy(t)
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
