package report

import (
	"fmt"
	"slices"
	"strings"
)

// The columns of figures, after the status and the place.
var figureHeads = []string{"off", "max abs", "rel. L2", "worst row", "1-cosine"}

// noFigure stands for a figure that is not there.
const noFigure = "-"

// figureCells are the figures of a row below figureHeads.
func figureCells(l *Layer) []string {
	m := l.figures()
	if m == nil {
		return make([]string, len(figureHeads))
	}
	off := noFigure // without atol and rtol the count of mismatches judges nothing
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

// rows writes rows of the report with their figures; mark is that of the first divergence.
func (p *printer) rows(rows []*Layer, mark *Layer, placed bool) {
	status, place, why := 0, width("layer"), width("limit")
	widths := make([]int, len(figureHeads))
	shown := make([]bool, len(figureHeads)) // a column without any figure is left out
	for _, l := range rows {
		status = max(status, width(string(l.Status)))
		if !l.tabular() {
			continue
		}
		for j, c := range figureCells(l) {
			widths[j] = max(widths[j], width(c), width(figureHeads[j]))
			shown[j] = shown[j] || c != noFigure
		}
		place = max(place, width(p.names.row(l)))
		why = max(why, width(l.why()))
	}
	lead, figures := 2+status+2, 0 // the sign and the status; the columns of figures
	for j, n := range widths {
		if shown[j] {
			figures += 2 + n
		}
	}
	// The name gets what is left of the line, and at least so much that it says something.
	place = min(place, max(p.opt.Width-lead-figures-2-min(why, 12), 24))

	columns := func(cells []string) string {
		var b strings.Builder
		for j, c := range cells {
			if shown[j] {
				b.WriteString("  " + padLeft(c, widths[j]))
			}
		}
		return b.String()
	}
	if figures > 0 {
		p.linef("%s", p.color(dim, strings.Repeat(" ", lead)+pad("layer", place)+columns(figureHeads)+"  limit"))
	}
	for _, l := range rows {
		sign := "  "
		if l == mark && placed {
			sign = "> "
		}
		line := sign + p.color(statusColor[l.Status], pad(string(l.Status), status)) + "  "
		room := p.opt.Width - lead - 2
		if l.tabular() {
			line += pad(p.names.short(l, place), place) + columns(figureCells(l))
			room -= place + figures
		} else {
			name := p.names.short(l, room)
			line += name
			room -= width(name)
		}
		if width(l.why()) <= room {
			p.linef("%s  %s", line, Clean(l.why()))
		} else {
			p.linef("%s", line)
			p.hang(belowRow, "", "", l.why())
		}
		for _, text := range l.said(p.opt.Verbose || l == mark) {
			p.hang(belowRow, "", "", text)
		}
	}
}

// tabular reports whether the row shows its figures. Those of an inherited error say nothing of the
// layer itself.
func (l *Layer) tabular() bool { return l.figures() != nil && l.Status != StatusInherited }

var statusColor = map[Status]string{
	StatusPass: green, StatusFail: red, StatusInherited: yellow, StatusMissing: red,
	StatusUnexpected: yellow, StatusIgnored: dim, StatusError: red,
}

// belowRow is the indentation of what stands below a row.
const belowRow = "      "

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
