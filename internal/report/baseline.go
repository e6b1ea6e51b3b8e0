package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// Change is one row of which an earlier report says something else.
type Change struct {
	Old, New *Layer // nil where that report does not have the row
	Class    Class
}

// Class says how a row changed.
type Class string

// The classes.
const (
	Worse  Class = "worse"  // passed and fails, or is more than twice as far off
	Gone   Class = "gone"   // was judged, and is not any more
	Better Class = "better" // failed and passes, or is less than half as far off
	New    Class = "new"    // was not judged, and is
)

// classes are in the order in which they are shown.
var classes = []Class{Worse, Gone, Better, New}

// Bad reports whether the change is one for the worse: a row that is no longer compared may hide
// what became wrong.
func (c Class) Bad() bool { return c == Worse || c == Gone }

// Changes compares the judged rows of two reports, bad ones first, then in the order of the later
// report.
//
// A row is worse if it passed and does not any more, or if its worst row's relative L2 is more than
// twice the old one and more than 8 units of rounding (2^−24 each for float32); better the other
// way round. Rows are joined by case, step, layer and port.
func Changes(old, now *Report) []Change {
	type key struct{ caseName, step, layer, port string }
	keyOf := func(l *Layer) key { return key{l.Case, l.Step, l.Layer, l.Port} }
	before := map[key]*Layer{}
	for i := range old.Layers {
		before[keyOf(&old.Layers[i])] = &old.Layers[i]
	}
	var changes []Change
	after := map[key]bool{}
	for i := range now.Layers {
		n := &now.Layers[i]
		o := before[keyOf(n)]
		after[keyOf(n)] = true
		if class := classOf(o, n); class != "" {
			changes = append(changes, Change{o, n, class})
		}
	}
	for i := range old.Layers {
		if o := &old.Layers[i]; !after[keyOf(o)] && !o.IsInput() && o.compared() {
			changes = append(changes, Change{o, nil, Gone})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class))
	})
	return changes
}

// classOf compares two forms of a row; old is nil for none. Inputs are evidence: they are not
// compared.
func classOf(old, now *Layer) Class {
	if now.IsInput() {
		return ""
	}
	was := old != nil && (old.compared() || old.failing())
	is := now.compared() || now.failing()
	switch {
	case !was && !is:
		return ""
	case !was:
		return New
	case !is:
		return Gone
	case !old.failing() && now.failing():
		return Worse
	case old.failing() && !now.failing():
		return Better
	case !old.compared() || !now.compared():
		return ""
	}
	a, b := old.measure(), now.measure()
	floor := changeUnits * unitOf(now)
	switch {
	case b > changeFactor*a && b > floor:
		return Worse
	case a > changeFactor*b && a > floor:
		return Better
	}
	return ""
}

// unitOf returns one unit of rounding of the candidate's type; 0 for integers.
func unitOf(l *Layer) float64 {
	if l.Actual == nil {
		return 0
	}
	d, err := tensor.ParseDType(l.Actual.DType)
	if err != nil {
		return 0
	}
	return d.Epsilon()
}

// Baseline writes the changes between two reports, and reports whether something got worse.
func Baseline(w io.Writer, old, now *Report, opt TextOptions) (worse bool, err error) {
	for _, r := range []*Report{old, now} {
		if err := r.check(); err != nil {
			return false, err
		}
	}
	changes := Changes(old, now)
	p := newPrinter(opt, append(slices.Clone(old.Layers), now.Layers...))
	byClass := map[Class][]Change{}
	for _, c := range changes {
		byClass[c.Class] = append(byClass[c.Class], c)
		worse = worse || c.Class.Bad()
	}
	stages := map[Class][]StageChange{}
	for _, c := range StageChanges(old, now) {
		stages[c.Class] = append(stages[c.Class], c)
		worse = worse || c.Class.Bad()
	}
	worse = worse || old.Verdict == Pass && now.Verdict != Pass
	var parts []string
	for _, c := range classes {
		parts = append(parts, fmt.Sprintf("%d %s", len(byClass[c])+len(stages[c]), c))
	}
	p.linef("Against the baseline: %s", strings.Join(parts, ", "))
	p.linef("  was %s: %s", old.Verdict, Headline(old))
	p.linef("  is  %s: %s", now.Verdict, Headline(now))
	for _, class := range classes {
		list := byClass[class]
		if len(list)+len(stages[class]) == 0 {
			continue
		}
		p.heading(strings.ToUpper(string(class[:1])) + string(class[1:]))
		n := p.shown(len(stages[class]), maxFailing)
		for _, c := range stages[class][:n] {
			p.prose("  ", "", Clean(c.String()))
		}
		p.more(len(stages[class])-n, "")
		if len(list) == 0 {
			continue
		}
		table := [][]string{{"layer", "was", "is", "factor", ""}}
		n = p.shown(len(list), maxFailing)
		for _, c := range list[:n] {
			l := c.New
			if l == nil {
				l = c.Old
			}
			a, b := figureOf(c.Old), figureOf(c.New)
			factor := noFigure
			if x, y := measureOf(c.Old), measureOf(c.New); x > 0 && y >= 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
				factor = num(Float(y / x))
			}
			table = append(table, []string{p.names.short(l, 60), a, b, factor, statusChange(c)})
		}
		p.columns(table)
		p.more(len(list)-n, "")
	}
	_, err = w.Write(p.Bytes())
	return worse, err
}

func measureOf(l *Layer) float64 {
	if l == nil {
		return -1
	}
	return l.measure()
}

// figureOf writes the worst row's relative L2.
func figureOf(l *Layer) string {
	x := measureOf(l)
	if x < 0 {
		return noFigure
	}
	return num(Float(x))
}

func statusChange(c Change) string {
	switch {
	case c.Old == nil:
		return string(c.New.Status)
	case c.New == nil:
		return "was " + string(c.Old.Status)
	case c.Old.Status == c.New.Status:
		return string(c.New.Status)
	}
	return fmt.Sprintf("%s → %s", c.Old.Status, c.New.Status)
}
