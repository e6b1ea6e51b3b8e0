package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// TextOptions say how Text writes.
type TextOptions struct {
	Color   bool   // ANSI colours: for a terminal
	Width   int    // columns; 0 is 100, less than 60 is 60
	Verbose bool   // every row and every note, nothing shortened
	All     string // where what is left out can be read, "all in report.json" if empty
}

// How much of a list is shown when not verbose.
const (
	maxFailing   = 20
	maxPassing   = 5
	maxUnmatched = 8
	maxCauses    = 5
	maxNotes     = 8
)

// Text writes the summary that a person reads: the verdict first, then the place and why, the rows, and what was left
// out. It ends with where the two runs come from.
func Text(w io.Writer, r *Report, opt TextOptions) error {
	if err := r.check(); err != nil {
		return err
	}
	if opt.Width == 0 {
		opt.Width = 100
	}
	opt.Width = max(opt.Width, 60)
	p := &printer{opt: opt, names: namingOf(r.Layers)}
	p.verdict(r)
	p.causes(r)
	p.table(r)
	p.unmatched("golden", r.Unmatched.Golden)
	p.unmatched("candidate", r.Unmatched.Actual)
	p.hints(r.Unmatched)
	p.order(r.Order, r.Verdict)
	p.list("Notes", r.Notes, maxNotes)
	p.linef("")
	p.prose("", "Source: ", r.Source.line())
	_, err := w.Write(p.Bytes())
	return err
}

// printer collects the text.
type printer struct {
	bytes.Buffer
	opt   TextOptions
	names naming
}

// The colours, as ANSI codes.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

func (p *printer) color(code, s string) string {
	if !p.opt.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) linef(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.WriteByte('\n')
}

// prose writes text wrapped at the width: lead before its first line, and its other lines below the text.
func (p *printer) prose(indent, lead, text string) {
	hang := indent + strings.Repeat(" ", width(lead))
	for i, line := range wrap(clean(text), max(p.opt.Width-width(hang), 30)) {
		if i == 0 {
			p.linef("%s%s%s", indent, lead, line)
		} else {
			p.linef("%s%s", hang, line)
		}
	}
}

// shown is how many of n entries to show; a rest of one is shown too, since saying so takes as much room.
func (p *printer) shown(n, limit int) int {
	if p.opt.Verbose || n <= limit+1 {
		return n
	}
	return limit
}

func (p *printer) verdict(r *Report) {
	word, code := strings.ToUpper(string(r.Verdict)), red
	if r.Verdict == Pass {
		code = green
	}
	if r.Fixture != "" {
		p.linef("%s", p.color(dim, clean(r.Fixture)))
	}
	first := true
	for _, line := range wrap(r.headline(), p.opt.Width-width(word)-2) {
		if first {
			p.linef("%s: %s", p.color(bold+";"+code, word), p.color(bold, line))
		} else {
			p.linef("%s%s", strings.Repeat(" ", width(word)+2), p.color(bold, line))
		}
		first = false
	}
	if len(r.NotJudged) > 0 {
		p.prose("  ", "not judged: ", strings.Join(r.NotJudged, "; "))
	}
	if d := r.FirstDivergence; d != nil {
		if why := kinds[r.Kind]; why != "" {
			p.prose("  ", r.Kind+": ", why)
		} else if r.Kind != "" {
			p.linef("  %s", clean(r.Kind))
		}
		if d.Text != "" {
			p.prose("  ", "", d.Sentence())
		}
		for _, e := range d.Evidence {
			p.prose("  ", "- ", e)
		}
		if n := len(d.Growth); n > 1 {
			p.prose("  ", "grows: ", growth(d.Growth))
		}
		if len(d.Uncaptured) > 0 {
			p.prose("  ", "", "a suspicion only: not recorded, so not compared, were the inputs "+strings.Join(d.Uncaptured, ", "))
		}
		if d.Port != "" {
			at := "port " + d.Port
			if d.Case != "" {
				at += ", case " + d.Case
			}
			if d.Step != "" {
				at += ", step " + d.Step
			}
			p.prose("  ", "", at)
		}
	}
	if len(r.Frontier) > 1 {
		n := p.shown(len(r.Frontier), maxUnmatched)
		more := ""
		if n < len(r.Frontier) {
			more = fmt.Sprintf(", … and %d more", len(r.Frontier)-n)
		}
		p.prose("  ", "frontier: ", strings.Join(r.Frontier[:n], ", ")+more)
	}
	if s := Count(r.Layers); r.Verdict != Pass || s.Status[StatusIgnored]+s.Status[StatusUnexpected] > 0 {
		if counts := s.counts(); counts != "" {
			p.prose("  ", "", fmt.Sprintf("%s, %s compared: %s", count(s.Layers, "layer"), count(s.Compared, "tensor"), counts))
		}
	}
}

// growth shows some of the blocks, the first and the last among them.
func growth(g []Growth) string {
	var parts []string
	step := max(1, (len(g)+4)/6)
	for i, b := range g {
		if i%step == 0 || i == len(g)-1 {
			parts = append(parts, fmt.Sprintf("%s %s", num(b.Error), clean(b.Layer)))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *printer) heading(s string) {
	p.linef("")
	p.linef("%s", p.color(bold, s))
}

func (p *printer) causes(r *Report) {
	causes := r.Causes
	if causes == nil || len(causes) == 0 && (r.FirstDivergence == nil || r.FirstDivergence.Layer == "") {
		return // nobody asked, or there is no place of which one could be found
	}
	p.heading("Causes")
	if len(causes) == 0 {
		p.prose("  ", "", "none that is known fits: write down what you suspect and try it, parity try --layer "+r.FirstDivergence.Layer+" fix.py, see "+CauseDoc)
		return
	}
	n := p.shown(len(causes), maxCauses)
	for _, c := range causes[:n] {
		code := dim
		if c.Proven {
			code = green
		}
		p.linef("  %s  %s  %s", p.color(code, pad(c.Word(), 6)), clean(c.ID), clean(c.Layer))
		p.prose("          ", "", c.Evidence())
		if c.Text != "" {
			p.prose("          ", "", c.Sentence())
		}
	}
	p.more(len(causes)-n, "")
	p.prose("  ", "", "what they mean and what to do: "+docs(causes[:n]))
}

func (p *printer) more(n int, what string) {
	if n > 0 {
		p.linef("  %s", p.color(dim, fmt.Sprintf("… and %d more%s, %s", n, what, cmp.Or(p.opt.All, "all in report.json"))))
	}
}

// table writes the rows: the failing ones in execution order, or the worst of those that pass.
func (p *printer) table(r *Report) {
	rows, limit, title := r.failing(), maxFailing, "Failing rows, in execution order"
	if len(rows) == 0 {
		rows, limit, title = r.worst(), maxPassing, "Worst rows"
	}
	if p.opt.Verbose {
		rows, title = nil, "All rows, in execution order"
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
}

// The columns of figures, after the status and the place.
var figureHeads = []string{"off", "max abs", "rel. L2", "worst row", "1-cosine"}

// noFigure stands for a figure that there is not.
const noFigure = "-"

// figureCells are the figures of a row below figureHeads.
func figureCells(l *Layer) []string {
	m := l.figures()
	if m == nil {
		return make([]string, len(figureHeads))
	}
	off := noFigure // without atol and rtol the count of mismatches judges nothing
	if l.Counted == nil && l.Tolerance != nil && l.Tolerance.Atol != nil {
		off = percent(m.Mismatches, m.N)
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
			p.linef("%s  %s", line, clean(l.why()))
		} else {
			p.linef("%s", line)
			p.prose(belowRow, "", l.why())
		}
		p.below(l, l == mark)
	}
}

// tabular reports whether the row shows its figures. Those of an inherited error say nothing of the layer itself.
func (l *Layer) tabular() bool { return l.figures() != nil && l.Status != StatusInherited }

var statusColor = map[Status]string{
	StatusPass: green, StatusFail: red, StatusInherited: yellow, StatusMissing: red,
	StatusUnexpected: yellow, StatusIgnored: dim, StatusError: red,
}

// belowRow is the indentation of what stands below a row.
const belowRow = "      "

// below writes what else is known of a row that shows its figures: all of it for the first divergence.
func (p *printer) below(l *Layer, all bool) {
	if !l.tabular() {
		return
	}
	if text := l.figures().nonFinite(); text != "" {
		p.prose(belowRow, "", text)
	}
	if !all && !p.opt.Verbose {
		return
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

// layerNumber is the number of a layer in a path: reasons that differ only there are one.
var layerNumber = regexp.MustCompile(`\.\d+\b`)

// unmatched lists the ports that only one side has: first those without a reason, each with its nearest name, then the
// others by reason.
func (p *printer) unmatched(side string, lones []Lone) {
	if len(lones) == 0 {
		return
	}
	var open []Lone
	var reasons []string
	byReason := map[string][]string{}
	for _, l := range lones {
		if l.Reason == "" {
			open = append(open, l)
			continue
		}
		reason := layerNumber.ReplaceAllString(l.Reason, ".*")
		if l.Ignored {
			reason = "ignored: " + reason
		}
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], l.Name)
	}
	p.heading(fmt.Sprintf("Only the %s has %s", side, count(len(lones), "port")))
	n := p.shown(len(open), maxUnmatched)
	for _, l := range open[:n] {
		text := fmt.Sprintf("%s (%s)", l.Name, l.Shape)
		if l.Nearest != "" {
			text += ", nearest: " + l.Nearest
		}
		p.prose("  ", "", text)
	}
	p.more(len(open)-n, " without a known reason")
	for _, reason := range reasons {
		names := byReason[reason]
		n := p.shown(len(names), 2)
		text := strings.Join(names[:n], ", ")
		if n < len(names) {
			text += ", …"
		}
		p.prose("  ", fmt.Sprintf("%4d  ", len(names)), reason+": "+text)
	}
}

// hints writes the lines to paste, each once.
func (p *printer) hints(u Unmatched) {
	seen := map[string]bool{}
	var hints []string
	for _, l := range append(append([]Lone{}, u.Golden...), u.Actual...) {
		if l.Hint != "" && !seen[l.Hint] {
			seen[l.Hint] = true
			hints = append(hints, l.Hint)
		}
	}
	if len(hints) == 0 {
		return
	}
	p.heading("To join or to leave out: lines for fixture.yaml")
	n := p.shown(len(hints), 3)
	for _, hint := range hints[:n] {
		for line := range strings.Lines(hint) {
			p.linef("  %s", clean(strings.TrimRight(line, "\r\n")))
		}
	}
	p.more(len(hints)-n, "")
}

// order says that the two sides' orders differ; how, only where something fails.
func (p *printer) order(o *Order, verdict Verdict) {
	if o == nil || o.Same {
		return
	}
	text := fmt.Sprintf("The two sides ran %s in another order (reported only: independent siblings may swap)", count(o.N, "layer"))
	if verdict == Pass && !p.opt.Verbose {
		p.linef("")
		p.prose("", "", text)
		return
	}
	p.list(text, o.Differences, maxNotes)
}

func (p *printer) list(title string, lines []string, limit int) {
	if len(lines) == 0 {
		return
	}
	p.heading(title)
	n := p.shown(len(lines), limit)
	for _, line := range lines[:n] {
		p.prose("  ", "", line)
	}
	p.more(len(lines)-n, "")
}
