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

// table writes the rows: the failing ones, or the worst of those that pass.
func (p *printer) table(r *Report) {
	rows, limit, title := r.Failing(), maxFailing, "Failing rows, in the order in which the values existed"
	if len(rows) == 0 {
		rows, limit, title = r.worst(), maxPassing, "Worst rows"
	}
	var inherited []string // after rows that are wrong by themselves they take one line
	if i := slices.IndexFunc(rows, func(l *Layer) bool { return l.Status == StatusInherited }); i > 0 && !p.opt.Verbose {
		for _, l := range rows[i:] {
			inherited = append(inherited, p.names.row(l))
		}
		rows = rows[:i]
	}
	if p.opt.Verbose {
		rows, title = nil, "All rows, in the order in which the values existed"
		for i := range r.Layers {
			rows = append(rows, &r.Layers[i])
		}
	}
	if len(rows) == 0 {
		return
	}
	n := p.shown(len(rows), limit)
	p.heading(title)
	p.rows(rows[:n], r.divergent(), r.FirstDivergence == nil || r.FirstDivergence.Layer != "")
	p.more(len(rows)-n, "")
	if len(inherited) > 0 {
		p.group(inherited, "only pass the error on")
	}
}

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
			p.prose(belowRow, "", l.why())
		}
		p.below(l, l == mark && !p.opt.Found)
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

// below writes what else is known of a row that shows its figures: all of it for the first
// divergence.
func (p *printer) below(l *Layer, all bool) {
	if !l.tabular() {
		return
	}
	if text := l.figures().nonFinite(); text != "" && !l.Benign {
		p.prose(belowRow, "", text)
	}
	if !all && !p.opt.Verbose {
		return
	}
	if text := l.quantised(); text != "" {
		p.prose(belowRow, "", text)
	}
	for _, lines := range [][]string{l.Violations, l.Detail} {
		for _, line := range lines {
			p.prose(belowRow, "", line)
		}
	}
	if l.Note != "" && l.Note != l.why() {
		p.prose(belowRow, "", l.Note)
	}
}
