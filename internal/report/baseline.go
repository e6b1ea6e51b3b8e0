package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Judged is one thing that was judged: a row of tensors, a prompt, a weight, a path, a text, an answer of a server.
type Judged struct {
	Stage, Name string
	Status      Status // NotJudged, pass or fail; of a row any
	Count       int    // of tokens, rows or outputs that were judged, where they are counted
	Text        string
	row         *Layer
}

func (j *Judged) fails() bool { return (&Layer{Status: j.Status}).failing() }

// judged lists what the stages other than the tensors judged.
func (r *Report) judged() (list []Judged) {
	for _, s := range stages() {
		if s.rows != nil {
			continue
		}
		for _, j := range s.judged(r) {
			j.Stage = s.name
			list = append(list, j)
		}
	}
	return list
}

// byKey has all that was judged, rows of tensors by case, step, layer and port; keys in their order. Inputs are
// evidence.
func (r *Report) byKey() (keys []string, all map[string]*Judged) {
	all = map[string]*Judged{}
	add := func(j *Judged, key ...string) {
		k := strings.Join(key, "\x00")
		if all[k] == nil && j.Status != NotJudged {
			keys, all[k] = append(keys, k), j
		}
	}
	for i, list := 0, r.judged(); i < len(list); i++ {
		add(&list[i], list[i].Stage, list[i].Name)
	}
	for i := range r.Layers {
		if l := &r.Layers[i]; !l.IsInput() && (l.compared() || l.failing()) {
			add(&Judged{Stage: StageTensors, Status: l.Status, row: l}, StageTensors, l.Case, l.Step, l.Layer, l.Port)
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

// Bad reports whether the change is one for the worse: a row that is no longer compared may hide
// what became wrong.
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
	case old == nil && now.row == nil && now.fails():
		return Worse
	case old == nil:
		return New
	case !old.fails() && now.fails():
		return Worse
	case old.fails() && !now.fails():
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
	if err := old.check(); err != nil {
		return false, err
	}
	worse = old.Verdict == Pass && now.Verdict != Pass
	both := &Report{Layers: slices.Concat(old.Layers, now.Layers)}
	d := composer{Document: Document{of: now}, View: View{Verbose: opt.Verbose, Times: 1}, names: namingOf(both.Layers)}
	changes, counts := Changes(old, now), []string{}
	d.add(Section{Lines: append(lines("was "+string(old.Verdict), Headline(old)), lines("is "+string(now.Verdict), Headline(now))...)}, 2)
	for _, class := range classes {
		of := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Class != class })
		counts = append(counts, fmt.Sprintf("%d %s", len(of), class))
		worse = worse || len(of) > 0 && class.Bad()
		d.changes(class, of)
	}
	d.Title = "Against the baseline: " + strings.Join(counts, ", ")
	return worse, d.Text(w, opt)
}

// changes lists those of a class.
func (d *composer) changes(class Class, list []Change) {
	if len(list) == 0 {
		return
	}
	n := d.shown(len(list), maxFailing)
	s := Section{Heading: strings.ToUpper(string(class[:1])) + string(class[1:]), More: len(list) - n}
	t := &Table{Head: []string{"layer", "was", "is", "factor", ""}, Figures: 3}
	for _, c := range list[:n] {
		if j := cmp.Or(c.New, c.Old); j.row == nil {
			s.Lines = append(s.Lines, Line{Text: c.String()})
		} else {
			was, is, factor := c.Old.measure(), c.New.measure(), noFigure
			if was > 0 && is >= 0 && !math.IsInf(was, 0) && !math.IsInf(is, 0) {
				factor = num(Float(is / was))
			}
			t.Rows = append(t.Rows, []string{d.names.short(j.row, 60), figure(was), figure(is), factor, c.statuses()})
		}
	}
	if len(t.Rows) > 0 {
		s.Table = t
	}
	d.Sections = append(d.Sections, s)
}

// measure is how far a row is off; -1 without one.
func (j *Judged) measure() float64 {
	if j == nil {
		return -1
	}
	return j.row.measure()
}

func figure(x float64) string {
	if x < 0 {
		return noFigure
	}
	return num(Float(x))
}

// statuses is "pass → fail", or "fail" where it was that or was not there.
func (c Change) statuses() string {
	switch {
	case c.New == nil:
		return "was " + string(c.Old.Status)
	case c.Old == nil || c.Old.Status == c.New.Status:
		return string(c.New.Status)
	}
	return fmt.Sprintf("%s → %s", c.Old.Status, c.New.Status)
}

// String is "serving first as ids, alone: pass → fail: …".
func (c Change) String() string {
	j, was, is := cmp.Or(c.New, c.Old), string(NotJudged), string(NotJudged)
	if c.Old != nil {
		was = string(c.Old.Status)
	}
	if c.New != nil {
		is = string(c.New.Status)
	}
	if was == is {
		was, is = fmt.Sprintf("%s, %d judged", was, c.Old.Count), fmt.Sprint(c.New.Count)
	}
	line := fmt.Sprintf("%s %s: %s → %s", j.Stage, j.Name, was, is)
	if c.New != nil && c.New.fails() && c.New.Text != "" {
		line += ": " + c.New.Text
	}
	return line
}
