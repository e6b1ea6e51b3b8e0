package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Markdown writes what a report says for GITHUB_STEP_SUMMARY, at twice the limits of a text. It stays far below 1 MiB
// whatever the names are: long ones are cut. The report lies in file, for the next command.
func Markdown(w io.Writer, r *Report, file string) error {
	if err := r.check(); err != nil {
		return err
	}
	var b bytes.Buffer
	d := r.Document(View{Times: 2, File: file})
	fmt.Fprintf(&b, "### %s: %s\n\n", strings.ToUpper(string(d.Verdict)), mdText(d.Title))
	if d.Fixture != "" {
		fmt.Fprintf(&b, "%s\n\n", mdText(d.Fixture))
	}
	for i := range d.Sections {
		mdSection(&b, &d.Sections[i], r)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func mdSection(b *bytes.Buffer, s *Section, r *Report) {
	if s.Folded {
		fmt.Fprintf(b, "<details><summary>%s</summary>\n\n", mdText(s.Heading))
	} else if s.Heading != "" {
		fmt.Fprintf(b, "#### %s\n\n", mdText(s.Heading))
	}
	if s.Rows != nil {
		mdRows(b, s.Rows, r)
	}
	if s.Table != nil {
		mdTable(b, s.Table.Head, s.Table.Rows)
	}
	for _, l := range s.Lines {
		lead, text := "", mdText(l.Text)
		if l.Lead != "" {
			lead = "**" + mdText(l.Lead) + ":** "
		}
		if l.Code != "" {
			lead += mdCode(l.Code) + " "
		}
		if l.Paste {
			text = mdCode(l.Text)
		}
		fmt.Fprintf(b, "%s- %s%s\n", strings.Repeat("  ", l.Level), lead, text)
	}
	if s.More > 0 {
		fmt.Fprintf(b, "\n… and %d more%s, all in report.json\n", s.More, s.What)
	}
	if s.Folded {
		b.WriteString("\n</details>\n")
	}
	b.WriteByte('\n')
}

// mdTable writes cells that are escaped, but for the first of a row, which is code.
func mdTable(b *bytes.Buffer, head []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		cells := []string{mdCode(row[0])}
		for _, c := range row[1:] {
			cells = append(cells, mdText(c))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteByte('\n')
}

// mdRows writes rows with their figures, and below them what else is known of the first divergence.
func mdRows(b *bytes.Buffer, rows []*Layer, r *Report) {
	names, mark := namingOf(r.Layers), r.divergent()
	fmt.Fprintf(b, "| status | layer | %s | limit |\n|---|---|%s---|\n", strings.Join(figureHeads, " | "), strings.Repeat("---:|", len(figureHeads)))
	for _, l := range rows {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", l.Status, mdCode(names.short(l, maxSummaryCell)), strings.Join(figureCells(l), " | "), mdText(l.why()))
	}
	b.WriteByte('\n')
	if mark != nil && slices.Contains(rows, mark) {
		for _, text := range mark.said(true) {
			fmt.Fprintf(b, "- %s\n", mdText(text))
		}
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
