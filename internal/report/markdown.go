package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Markdown writes a summary for GITHUB_STEP_SUMMARY: the verdict, the place, causes and up to 50
// rows, the failing ones or else the worst. It stays far below 1 MiB whatever
// the names are: long ones are cut.
func Markdown(w io.Writer, r *Report) error {
	if err := r.check(); err != nil {
		return err
	}
	var b bytes.Buffer
	names := namingOf(r.Layers)
	fmt.Fprintf(&b, "### %s: %s\n\n", strings.ToUpper(string(r.Verdict)), mdText(Headline(r)))
	fmt.Fprintf(&b, "Stages: %s\n\n", mdText(r.StageLine()))
	for _, line := range r.quantised() {
		fmt.Fprintf(&b, "%s\n\n", mdText(line))
	}
	if table := r.bisect(); table != nil {
		fmt.Fprintf(&b, "| token %d of %s | |\n|---|---|\n", table.Token, mdText(table.Case))
		for _, row := range table.rows() {
			fmt.Fprintf(&b, "| %s | %s |\n", row.way, row.status)
		}
		fmt.Fprintf(&b, "\n%s\n\n", mdText(table.conclusion()))
	}
	r.mdPaths(&b)
	open := r.Open()
	if r.Verdict == Incomplete {
		open = open[1:] // the headline says the first
	}
	for _, text := range open[:min(len(open), maxNotes)] {
		fmt.Fprintf(&b, "- not covered: %s\n", mdText(text))
	}
	if r.Verdict == Incomplete {
		fmt.Fprintf(&b, "\n%s\n\n", mdText(OpenHelp))
	}
	if d := r.FirstDivergence; d != nil {
		for _, text := range []string{r.KindText(), d.Sentence()} {
			if text != "" {
				fmt.Fprintf(&b, "%s\n\n", mdText(text))
			}
		}
		for _, e := range slices.Concat(d.Code(), d.Evidence) {
			fmt.Fprintf(&b, "- %s\n", mdText(e))
		}
		if len(d.Code())+len(d.Evidence) > 0 {
			b.WriteByte('\n')
		}
	}
	if s := r.Serving; s != nil {
		fmt.Fprintf(&b, "%s\n\n", mdText(s.Title()))
		for _, line := range s.Lines() {
			fmt.Fprintf(&b, "- %s\n", mdText(line))
		}
		b.WriteByte('\n')
	}
	if s := Count(r.Layers); s.counts() != "" {
		fmt.Fprintf(&b, "%s\n\n", Counts(r))
	}
	for _, c := range r.layerCauses() {
		word := c.Word()
		if c.Proven {
			word = "**" + word + "**"
		}
		fmt.Fprintf(&b, "- %s %s%s: %s. %s See %s.\n", word, mdCode(c.ID), c.At(mdCode), mdText(c.Evidence()),
			mdText(c.Sentence()), mdCode(c.Doc()))
	}
	if len(r.layerCauses()) > 0 {
		b.WriteByte('\n')
	}
	rows := r.Failing()
	if len(rows) == 0 {
		rows = r.worst()
	}
	if len(rows) > 0 {
		fmt.Fprintf(&b, "| status | layer | %s | limit |\n|---|---|%s---|\n",
			strings.Join(figureHeads, " | "), strings.Repeat("---:|", len(figureHeads)))
		for _, l := range rows[:min(len(rows), maxSummaryRows)] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.Status, mdCode(names.short(l, maxSummaryCell)),
				strings.Join(figureCells(l), " | "), mdText(l.why()))
		}
		if n := len(rows) - maxSummaryRows; n > 0 {
			fmt.Fprintf(&b, "\n… and %d more, all in report.json\n", n)
		}
		b.WriteByte('\n')
	}
	if lines := r.Benign(); len(lines) > 0 {
		fmt.Fprintf(&b, "%s:\n\n", benignHead)
		for _, line := range lines {
			fmt.Fprintf(&b, "- %s\n", mdText(line))
		}
		b.WriteByte('\n')
	}
	if r.hasSource() {
		fmt.Fprintf(&b, "%s\n", mdText(r.Source.String()))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// mdPaths writes a table of the execution paths, and which of them show one fault.
func (r *Report) mdPaths(b *bytes.Buffer) {
	if len(r.Paths) == 0 {
		return
	}
	for _, line := range r.OnePass() {
		fmt.Fprintf(b, "%s\n\n", mdText(line))
	}
	b.WriteString("| path | matches the golden | consistent with one pass | first divergence |\n|---|---|---|---|\n")
	for i := range r.Paths[:min(len(r.Paths), maxSummaryRows)] {
		p := &r.Paths[i]
		consistent, first := p.Consistent.Short(), ""
		if p.Repeats != nil {
			consistent = strings.TrimPrefix(consistent+"; equal to its first run: "+p.Repeats.Short(), "; ")
		}
		if p.First != nil {
			first = mdText(p.First.String())
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", mdCode(p.Path), p.Matches.Short(), consistent, first)
	}
	if n := len(r.Paths) - maxSummaryRows; n > 0 {
		fmt.Fprintf(b, "\n… and %d more, all in report.json\n", n)
	}
	b.WriteByte('\n')
	for _, line := range r.findings() {
		fmt.Fprintf(b, "- %s\n", mdText(line))
	}
	if len(r.findings()) > 0 {
		b.WriteByte('\n')
	}
}

// mdText escapes what Markdown and HTML would take for markup.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range cut(Clean(s), maxSummaryCell) {
		if strings.ContainsRune("\\`*_{}[]<>#|~&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mdCode writes s as code that may stand in a table. A backtick cannot be escaped there, so it
// becomes an apostrophe.
func mdCode(s string) string {
	s = strings.ReplaceAll(shorten(Clean(s), maxSummaryCell), "`", "'")
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

// Annotations writes GitHub workflow commands, one error line each for the first divergence and the
// rows that fail by themselves, at most ten. A run that passes has none.
func Annotations(w io.Writer, r *Report) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Verdict == Pass {
		return nil
	}
	var b bytes.Buffer
	fixture := "parity"
	if r.Fixture != "" {
		fixture += " " + r.Fixture
	}
	left := maxAnnotations
	annotate := func(title, message string) {
		if left > 0 {
			left--
			fmt.Fprintf(&b, "::error title=%s::%s\n", commandProperty.Replace(title), commandData.Replace(message))
		}
	}
	annotate(Clean(fixture), cut(Headline(r), maxSummaryCell))
	names, mark := namingOf(r.Layers), r.divergent()
	for _, l := range r.Failing() {
		if l.Status == StatusInherited || l == mark && r.FirstDivergence == nil {
			continue // said already, by the culprit or by the headline
		}
		message := failWord[l.Status]
		if m := l.figures(); m != nil {
			message += fmt.Sprintf(": max |a-g| %s, rel. L2 %s, worst row %s", num(m.MaxAbs), num(m.RelL2),
				num(m.RowRelL2))
		}
		switch {
		case l.why() == "":
		case l.Status == StatusFail:
			message += ", limit " + l.Limit()
		default:
			message += ": " + Clean(l.why())
		}
		annotate(names.short(l, 100), cut(message, maxSummaryCell))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// GitHub's own escapes: in a message, and in a property, which ends at a comma or colon.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
