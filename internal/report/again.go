package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
)

// Judged is one thing that was judged: a row of tensors, a prompt, a weight, a path, a text, an answer of a server.
type Judged struct {
	Stage, Name string // a row has no other name than its place
	Status      Status // NotJudged, pass or fail; of a row any
	Count       int    // of tokens, rows or outputs that were judged, where they are counted
	Text        string
	row         *Layer
}

func (j *Judged) key() [5]string {
	if l := j.row; l != nil {
		return [5]string{j.Stage, l.Case, l.Step, l.Layer, l.Port}
	}
	return [5]string{j.Stage, j.Name}
}

// byKey has all that was judged; keys are in the order of the stages.
func (r *Report) byKey() (keys [][5]string, all map[[5]string]*Judged) {
	all = map[[5]string]*Judged{}
	for _, s := range stages() {
		for _, j := range s.judged(r) {
			j.Stage = s.name
			if k := j.key(); all[k] == nil && j.Status != NotJudged {
				keys, all[k] = append(keys, k), &j
			}
		}
	}
	return keys, all
}

// Change is something of which an earlier report says something else.
type Change struct {
	Old, New *Judged // nil where that report has not judged it
	Class    Class
}

// Class says how something changed.
type Class string

const (
	Worse  Class = "worse"  // passed and fails, or is more than twice as far off
	Gone   Class = "gone"   // was judged, or more of it, and is not any more
	Better Class = "better" // failed and passes, or is less than half as far off
	New    Class = "new"    // was not judged, and is
)

var classes = []Class{Worse, Gone, Better, New}

// Bad is one for the worse: a row that is no longer compared may hide what became wrong.
func (c Class) Bad() bool { return c == Worse || c == Gone }

// Changes compares what two reports judged, bad changes first, then in the order of the later report.
//
// A row is worse if it passed and does not any more, or if its worst row's relative L2 is more than
// twice the old one and more than 8 units of rounding (2^−24 each for float32); better the other
// way round. What was judged of fewer tokens, rows or metrics than before is gone, as it may hide what became wrong.
func Changes(old, now *Report) (changes []Change) {
	was, before := old.byKey()
	keys, after := now.byKey()
	for _, k := range keys {
		if class := classOf(before[k], after[k]); class != "" {
			changes = append(changes, Change{before[k], after[k], class})
		}
	}
	for _, k := range was {
		if o := before[k]; after[k] == nil && (o.row == nil || o.row.compared()) {
			changes = append(changes, Change{o, nil, Gone})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class))
	})
	return changes
}

// classOf compares two forms of what now is judged; old is nil where it was not.
func classOf(old, now *Judged) Class {
	switch {
	case old == nil && now.row == nil && now.Status.failing(), old != nil && !old.Status.failing() && now.Status.failing():
		return Worse
	case old == nil:
		return New
	case old.Status.failing() && !now.Status.failing():
		return Better
	case now.row == nil && now.Status == StatusPass && now.Count < old.Count:
		return Gone
	case now.row == nil || !old.row.compared() || !now.row.compared():
		return ""
	}
	a, b := old.row.measure(), now.row.measure()
	floor := 0.0 // of integers
	if types := (&Layer{Actual: now.row.Actual}).types(); len(types) > 0 {
		floor = changeUnits * types[0].Epsilon()
	}
	switch {
	case b > changeFactor*a && b > floor:
		return Worse
	case a > changeFactor*b && a > floor:
		return Better
	}
	return ""
}

// Baseline writes the changes between two reports, and reports whether something got worse.
func Baseline(w io.Writer, old, now *Report, opt TextOptions) (worse bool, err error) {
	if err := errors.Join(old.check(), now.check()); err != nil {
		return false, err
	}
	worse = old.Verdict == Pass && now.Verdict != Pass
	d := composer{View: View{Verbose: opt.Verbose}}
	changes, counts := Changes(old, now), []string{}
	d.add(Section{Lines: lines("was "+string(old.Verdict), Headline(old))}, 1, lines("is "+string(now.Verdict), Headline(now))...)
	for _, class := range classes {
		s := Section{Heading: strings.ToUpper(string(class[:1])) + string(class[1:])}
		for _, c := range changes {
			if c.Class == class {
				s.Lines = append(s.Lines, Line{Text: c.String()})
			}
		}
		counts = append(counts, fmt.Sprintf("%d %s", len(s.Lines), class))
		worse = worse || len(s.Lines) > 0 && class.Bad()
		d.add(s, maxRows)
	}
	d.Title = "Against the baseline: " + strings.Join(counts, ", ")
	return worse, d.Text(w, opt)
}

// String is "serving first as ids, alone: pass → fail: …", and of a row "tensors a output: pass → fail, worst row 1e-7 → 0.02".
func (c Change) String() string {
	j := cmp.Or(c.New, c.Old)
	name := j.Name
	if j.row != nil {
		name = naming(true).row(j.row)
	}
	line := fmt.Sprintf("%s %s: %s → %s", j.Stage, name, c.Old.says(), c.New.says())
	if c.New != nil && c.New.Status.failing() && c.New.Text != "" {
		line += ": " + c.New.Text
	}
	return line
}

// says is what came of a thing in a word, of a row with how far it is off, else of how much.
func (j *Judged) says() string {
	switch {
	case j == nil:
		return string(NotJudged)
	case j.row != nil && j.row.metrics() != nil:
		return fmt.Sprintf("%s, worst row %s", j.Status, num(Float(j.row.measure())))
	case j.Count > 0:
		return fmt.Sprintf("%s of %d", j.Status, j.Count)
	}
	return string(j.Status)
}

// Rejudge judges the metrics of a report by other criteria, which replace all that judged before.
// Only what the metrics tell for certain is decided; a row that they do not decide is an error,
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
		return nil, errors.New("metrics of layers judge no execution path and no token again: change the tolerances in fixture.yaml and run the tests again")
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
	// What is wrong besides the metrics stays wrong, whatever the criteria.
	beyond := r.Verdict == Fail && placeOf(r.stage()) < placeOf(StageTensors) ||
		!r.holds() && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.Status.failing() })
	switch out.decide(); {
	case beyond && out.holds():
		out.Verdict, out.Error, out.Kind, out.FirstDivergence = r.Verdict, r.Error, r.Kind, r.FirstDivergence
	case out.holds() && out.vacuous():
		out.Verdict, out.Error = Error, "nothing was compared"
	}
	out.SetServing(out.Serving) // which the rows do not excuse
	notes := []string{"re-judged from the metrics of report.json by " + (&Layer{Tolerance: by}).Limit()}
	if unsure > 0 {
		notes = append(notes, count(unsure, "row")+" cannot be re-judged from the metrics: compare the dumps again")
	}
	out.Notes = append(notes, r.Notes...)
	out.Summary = Count(out.Layers)
	return &out, nil
}

// rejudgeRows judges the outputs that decide by themselves, then those that a layer had excused which does not fail any
// more. It returns how many their metrics do not decide.
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

func (r *Report) decide() {
	failing := r.rows((*Layer).failing)
	outputs := slices.DeleteFunc(slices.Clone(failing), (*Layer).IsInput)
	switch {
	case slices.ContainsFunc(outputs, func(l *Layer) bool { return l.Status != StatusError }):
		r.Verdict, r.Error = Fail, ""
		return
	case len(outputs) > 0:
		r.Verdict, r.Error = Error, "some rows cannot be re-judged from their metrics"
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

// judge applies criteria to the metrics of a row: pass, fail and what is broken, or error and what is not known.
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
