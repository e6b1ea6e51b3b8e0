package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Judged is one thing that was judged: a row of tensors, a prompt, a weight, a path, a text, an answer of a server.
type Judged struct {
	Stage, Name string // a row has no other name than its place
	Status      Status // NotJudged, pass or fail; of a row any
	Count       int    // of tokens, rows or outputs that were judged, where they are counted
	Text        string
	row         *Layer
}

// key tells one thing that was judged from all others.
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

// The classes.
const (
	Worse  Class = "worse"  // passed and fails, or is more than twice as far off
	Gone   Class = "gone"   // was judged, or more of it, and is not any more
	Better Class = "better" // failed and passes, or is less than half as far off
	New    Class = "new"    // was not judged, and is
)

// classes are in the order in which they are shown.
var classes = []Class{Worse, Gone, Better, New}

// Bad is one for the worse: a row that is no longer compared may hide what became wrong.
func (c Class) Bad() bool { return c == Worse || c == Gone }

// Changes compares what two reports judged, bad changes first, then in the order of the later report.
//
// A row is worse if it passed and does not any more, or if its worst row's relative L2 is more than
// twice the old one and more than 8 units of rounding (2^−24 each for float32); better the other
// way round. What was judged of fewer tokens, rows or figures than before is gone, as it may hide what became wrong.
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
	case j.row != nil && j.row.figures() != nil:
		return fmt.Sprintf("%s, worst row %s", j.Status, num(Float(j.row.measure())))
	case j.Count > 0:
		return fmt.Sprintf("%s of %d", j.Status, j.Count)
	}
	return string(j.Status)
}
