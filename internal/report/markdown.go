package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Markdown writes what a report says for GITHUB_STEP_SUMMARY. It stays far below 1 MiB whatever the names are: long ones
// are cut. The report lies in file, for the next command.
func Markdown(w io.Writer, r *Report, file string) error {
	if err := r.check(); err != nil {
		return err
	}
	var b bytes.Buffer
	d := r.Document(View{File: file})
	fmt.Fprintf(&b, "### %s: %s\n\n", strings.ToUpper(string(d.Verdict)), mdText(d.Title))
	if d.Fixture != "" {
		fmt.Fprintf(&b, "%s\n\n", mdText(d.Fixture))
	}
	for i := range d.Sections {
		mdSection(&b, &d.Sections[i])
	}
	_, err := w.Write(b.Bytes())
	return err
}

func mdSection(b *bytes.Buffer, s *Section) {
	if s.Folded {
		fmt.Fprintf(b, "<details><summary>%s</summary>\n\n", mdText(s.Heading))
	} else if s.Heading != "" {
		fmt.Fprintf(b, "#### %s\n\n", mdText(s.Heading))
	}
	if s.Table != nil {
		mdTable(b, s.Table)
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
		fmt.Fprintf(b, "\n… and %d more, all in report.json\n", s.More)
	}
	if s.Folded {
		b.WriteString("\n</details>\n")
	}
	b.WriteByte('\n')
}

// mdTable writes a table, and below it what else is said of its rows.
func mdTable(b *bytes.Buffer, t *Table) {
	fmt.Fprintf(b, "| %s |\n|%s%s%s\n", strings.Join(t.Head, " | "), strings.Repeat("---|", t.Name+1), strings.Repeat("---:|", t.Figures),
		strings.Repeat("---|", len(t.Head)-t.Name-1-t.Figures))
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if cells[i] = mdText(c); i == t.Name {
				cells[i] = mdCode(c)
			}
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteByte('\n')
	for i, row := range t.Rows {
		for _, text := range t.below(i) {
			fmt.Fprintf(b, "- %s %s\n", mdCode(row[t.Name]), mdText(text))
		}
	}
}

var markup = regexp.MustCompile("[\\\\`*_{}\\[\\]<>#|~&!]")

// mdText escapes what Markdown and HTML would take for markup.
func mdText(s string) string {
	return markup.ReplaceAllString(middle(Clean(s), maxSummaryCell), `\$0`)
}

// mdCode is s as code that may stand in a table: a backtick, which nothing escapes there, becomes an apostrophe.
func mdCode(s string) string {
	s = strings.ReplaceAll(middle(Clean(s), maxSummaryCell), "`", "'")
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

// Annotations writes GitHub workflow commands, one error line each for the verdict and the rows that
// fail by themselves, at most ten. A run that passes has none.
func Annotations(w io.Writer, r *Report) error {
	if err := r.check(); err != nil || r.Verdict == Pass {
		return err
	}
	says, names := [][2]string{{strings.TrimSpace("parity " + Clean(r.Fixture)), Clean(Headline(r))}}, namingOf(r.Layers)
	for _, l := range r.rows((*Layer).fails) {
		var said []string
		for i, c := range figureCells(l) {
			if c != "" && c != noFigure {
				said = append(said, figureHeads[i]+" "+c)
			}
		}
		said = append(said, Clean(l.why()))
		says = append(says, [2]string{middle(names.row(l), 100), string(l.Status) + ": " + strings.Join(said, ", ")})
	}
	var b bytes.Buffer
	for _, s := range says[:min(len(says), maxAnnotations)] {
		fmt.Fprintf(&b, "::error title=%s::%s\n", commandProperty.Replace(s[0]), commandData.Replace(middle(s[1], maxSummaryCell)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// GitHub's own escapes: in a message, and in a property, which ends at a comma or colon.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
