package report

import (
	"fmt"
	"slices"
)

// Table is a table of words or figures.
type Table struct {
	Head    []string
	Rows    [][]string
	Name    int        // the column that names a row
	Figures int        // how many columns after it are figures
	Cut     bool       // names are shortened to fit a line
	Mark    int        // the number of the row of the first divergence, from 1; 0 for none
	Below   [][]string // what else is said of a row, by its place; may end before the last
}

func (t *Table) below(row int) []string {
	if row < len(t.Below) {
		return t.Below[row]
	}
	return nil
}

// The columns of figures, after the status and the place.
var figureHeads = []string{"off", "max abs", "rel. L2", "worst row", "1-cosine"}

// noFigure stands for a figure that is not there.
const noFigure = "-"

// tableOf is a table of rows of the report, with all that is known of some.
func (d *composer) tableOf(rows []*Layer) *Table {
	t := &Table{Head: slices.Concat([]string{"status", "layer"}, figureHeads, []string{"limit"}), Name: 1, Figures: len(figureHeads), Cut: true}
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
