package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// figures returns those that judge the row: the standard run's, else the injected run's, else nil.
func (l *Layer) figures() *Metrics {
	if l.Standard != nil {
		return l.Standard
	}
	return l.Injected
}

// measure returns how far a row with figures is off, for sorting: the worst row's relative L2. A NaN or an
// infinity that does not match counts as infinite.
func (l *Layer) measure() float64 {
	m := l.figures()
	if math.IsNaN(float64(m.RowRelL2)) || m.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return float64(m.RowRelL2)
}

// why returns what stands at the end of a row: the limit, the culprit, or the note.
func (l *Layer) why() string {
	switch {
	case l.Status == StatusInherited && l.Blame != "":
		return "from " + l.Blame
	case l.Benign && l.Status == StatusPass:
		return l.Note
	case l.Status == StatusPass || l.Status == StatusFail || l.Status == StatusInherited:
		return l.Limit()
	case l.Note != "":
		return l.Note
	case l.Status == StatusMissing:
		return "the candidate did not record it"
	case l.Status == StatusUnexpected:
		return "the golden does not have it"
	}
	return ""
}

// naming writes the place of a row. The case and the step are left out where all rows have the
// same.
type naming struct{ cases bool }

func namingOf(rows []Layer) naming {
	return naming{cases: slices.ContainsFunc(rows, func(l Layer) bool {
		return l.Case != rows[0].Case || l.Step != rows[0].Step
	})}
}

// row is "model.layers.0 output", with the case and step after it where they differ.
func (n naming) row(l *Layer) string {
	layer, rest := Clean(l.Layer), l.Port
	if layer == "" {
		layer = "(root)"
	}
	if n.cases {
		rest += " " + strings.Trim(l.Case+"."+l.Step, ".")
	}
	return layer + strings.TrimRight(" "+Clean(rest), " ")
}

// compared reports whether the row was judged by the figures of at least one element.
func (l *Layer) compared() bool {
	switch l.Status {
	case StatusPass, StatusFail, StatusInherited:
		m := l.figures()
		return m != nil && m.N > 0
	}
	return false
}

// failing reports whether the row by itself keeps a run from passing.
func (l *Layer) failing() bool {
	switch l.Status {
	case StatusFail, StatusInherited, StatusMissing, StatusError:
		return true
	}
	return false
}

// integers reports whether a side has integers or bools.
func (l *Layer) integers() bool {
	return slices.ContainsFunc(l.types(), func(d tensor.DType) bool { return !d.IsFloat() })
}

// Failing lists the rows that keep the run from passing: those that are wrong by themselves, then
// what they inherited, each in the order in which the values existed.
func (r *Report) Failing() []*Layer {
	var own, inherited []*Layer
	for i := range r.Layers {
		switch l := &r.Layers[i]; {
		case l.Status == StatusInherited:
			inherited = append(inherited, l)
		case l.failing():
			own = append(own, l)
		}
	}
	return append(own, inherited...)
}

// worst lists all compared rows, those that are furthest off first; last those whose figures say
// nothing.
func (r *Report) worst() []*Layer {
	var rows []*Layer
	for i := range r.Layers {
		if r.Layers[i].compared() {
			rows = append(rows, &r.Layers[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *Layer) int {
		if a.Benign != b.Benign {
			return map[bool]int{true: 1, false: -1}[a.Benign]
		}
		return cmp.Compare(b.measure(), a.measure())
	})
	return rows
}

// divergent returns the failing row of the first divergence (of an interval: the row at its end),
// else the first that fails by itself, else nil.
func (r *Report) divergent() *Layer {
	var first, end *Layer
	for _, l := range r.Failing() {
		if d := r.FirstDivergence; d != nil && l.Port == d.Port && l.Case == d.Case && l.Step == d.Step {
			if l.Layer == d.Layer {
				return l
			}
			if l.Layer == d.Before {
				end = l
			}
		}
		if first == nil && l.Status != StatusInherited {
			first = l
		}
	}
	if end != nil {
		return end
	}
	return first
}

// The columns of figures, after the status and the place.
var figureHeads = []string{"off", "max abs", "rel. L2", "worst row", "1-cosine"}

// tableOf is a table of rows of the report, with all that is known of some.
func (d *composer) tableOf(rows []*Layer) *Table {
	t := &Table{Head: slices.Concat([]string{"status", "layer"}, figureHeads, []string{"limit"}), Name: 1, Figures: len(figureHeads)}
	mark, placed := d.r.divergent(), d.r.FirstDivergence == nil || d.r.FirstDivergence.Layer != ""
	for i, l := range rows {
		if l == mark && placed {
			t.Mark = i + 1
		}
		cells := make([]string, len(figureHeads))
		if l.tabular() {
			cells = figureCells(l)
		}
		t.Rows = append(t.Rows, slices.Concat([]string{string(l.Status), d.names.row(l)}, cells, []string{l.why()}))
		t.Below = append(t.Below, l.said(d.Verbose || l == mark))
	}
	return t
}

// tabular reports whether the row shows its figures. Those of an inherited error say nothing of the
// layer itself.
func (l *Layer) tabular() bool { return l.figures() != nil && l.Status != StatusInherited }

// figureCells are the figures of a row below figureHeads.
func figureCells(l *Layer) []string {
	m, off := l.figures(), noFigure // without atol and rtol the count of mismatches judges nothing
	if l.Counted == nil && l.Tolerance != nil {
		if _, asked := l.Tolerance.Criteria.Tolerance(); asked {
			off = percent(m.Mismatches, m.N)
		}
	}
	return []string{off, num(m.MaxAbs), num(m.RelL2), num(m.RowRelL2), num(m.CosineDistance)}
}

// percent is the share n/all; only none is "0", only all is "100 %".
func percent(n, all int) string {
	if n == 0 || all == 0 {
		return "0"
	}
	share := 100 * float64(n) / float64(all)
	switch {
	case n == all:
		return "100 %"
	case share < 0.1:
		return "<0.1 %"
	case share > 99.9:
		return "99.9 %"
	}
	return fmt.Sprintf("%.1f %%", share)
}

// said is what else is known of a row that shows its figures: all of it for the first divergence.
func (l *Layer) said(all bool) []string {
	if !l.tabular() {
		return nil
	}
	var out []string
	if !l.Benign {
		out = append(out, l.figures().nonFinite())
	}
	if all {
		out = append(append(append(out, l.quantised()), l.Violations...), l.Detail...)
		if l.Note != l.why() {
			out = append(out, l.Note)
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
