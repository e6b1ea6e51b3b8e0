package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/sanitize"
)

// TextOptions say how a text is written.
type TextOptions struct {
	Color   bool   // ANSI colours: for a terminal
	Width   int    // columns; 0 is 100, less than 60 is 60
	Verbose bool   // every row and every note, nothing shortened
	File    string // where the report lies, for the next command; empty: nowhere
	All     string // where what is left out can be read, "all in report.json" if empty
}

// Text writes for a terminal: the verdict, the place and why, the rows, what was left out, and the source.
func Text(w io.Writer, r *Report, opt TextOptions) error {
	if err := r.check(); err != nil {
		return err
	}
	return r.Document(View{Verbose: opt.Verbose, File: opt.File}).Text(w, opt)
}

// Text writes a document for a terminal.
func (d *Document) Text(w io.Writer, opt TextOptions) error {
	opt.Width = max(cmp.Or(opt.Width, 100), 60)
	p := &printer{opt: opt}
	if d.Title != "" {
		p.title(d)
	}
	for i := range d.Sections {
		p.section(&d.Sections[i])
	}
	_, err := w.Write(p.Bytes())
	return err
}

type printer struct {
	bytes.Buffer
	opt TextOptions
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

// colors are those of words that say how sure something is, or what came of it.
var colors = map[string]string{"proven": green, "guess": dim, string(StatusPass): green, string(StatusFail): red, string(StatusInherited): yellow,
	string(StatusMissing): red, string(StatusUnexpected): yellow, string(StatusIgnored): dim, string(StatusError): red,
	string(Incomplete): yellow}

func (p *printer) color(code, s string) string {
	if !p.opt.Color || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) linef(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.WriteByte('\n')
}

func (p *printer) title(d *Document) {
	if d.Heading != "" {
		p.linef("%s", d.Heading)
	}
	if d.Fixture != "" {
		p.linef("%s", p.color(dim, d.Fixture))
	}
	p.hang("", strings.ToUpper(string(d.Verdict)), bold+";"+colors[string(d.Verdict)], d.Title, bold)
}

func (p *printer) section(s *Section) {
	indent := "  "
	if s.Heading != "" {
		p.linef("\n%s", p.color(bold, Clean(s.Heading)))
	} else if s.ID == sectionSource || s.ID == sectionNext {
		p.linef("")
		indent = ""
	}
	if s.Table != nil {
		p.table(s.Table)
	}
	for _, l := range s.Lines {
		p.line(indent+strings.Repeat("    ", l.Level), l)
	}
	if s.More > 0 {
		p.linef("  %s", p.color(dim, fmt.Sprintf("… and %d more, %s", s.More, cmp.Or(p.opt.All, "all in report.json"))))
	}
}

func (p *printer) line(indent string, l Line) {
	if !l.Paste {
		p.hang(indent, l.Lead, colors[l.Lead], Clean(l.Code+" "+l.Text), "")
		return
	}
	p.linef("%s%s", indent, joined(": ", l.Lead, Clean(l.Text)))
}

// table writes a table in columns, less those that no row has anything in. A reason in the last one stands below its row
// where the line does not hold it; names and metrics stay whole.
func (p *printer) table(t *Table) {
	widths, last := make([]int, len(t.Head)), len(t.Head)-1
	for i, head := range t.Head {
		for _, row := range t.Rows {
			if c := Clean(row[i]); c != "" && c != noMetric {
				widths[i] = max(widths[i], width(c), width(head))
			}
		}
	}
	widths[t.Name] = min(widths[t.Name], p.opt.Width/2) // few longer names do not move all metrics
	p.linef("%s", p.color(dim, strings.TrimRight(t.line(t.Head, widths), " ")))
	for k, row := range t.Rows {
		line, below := t.line(row, widths), t.below(k)
		if width(row[last]) > maxLimit && width(strings.TrimRight(line, " ")) > p.opt.Width {
			line, below = t.line(append(row[:last:last], ""), widths), append([]string{row[last]}, below...)
		}
		if t.Mark == k+1 {
			line = ">" + line[1:]
		}
		if color := colors[row[0]]; color != "" {
			line = strings.Replace(line, row[0], p.color(color, row[0]), 1)
		}
		p.linef("%s", line)
		for _, text := range below {
			p.line("      ", Line{Text: text})
		}
	}
}

// line are the cells of a row in their columns: metrics to the right, all others to the left.
func (t *Table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, c := range row {
		w := -widths[i]
		if i > t.Name && i <= t.Name+t.Metrics {
			w = widths[i]
		}
		if w != 0 {
			fmt.Fprintf(&b, "  %*s", w, Clean(c))
		}
	}
	return b.String()
}

// hang writes a text after what it is about; what its first line does not hold stands below its beginning.
func (p *printer) hang(indent, lead, leadColor, text, color string) {
	start, below := indent, indent
	if lead != "" {
		start, below = indent+p.color(leadColor, lead)+": ", indent+strings.Repeat(" ", width(lead+": "))
	}
	for _, line := range wrap(text, max(p.opt.Width-width(below), 30)) {
		p.linef("%s%s", start, p.color(color, line))
		start = below
	}
}

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

func mdTable(b *bytes.Buffer, t *Table) {
	fmt.Fprintf(b, "| %s |\n|%s%s%s\n", strings.Join(t.Head, " | "), strings.Repeat("---|", t.Name+1), strings.Repeat("---:|", t.Metrics),
		strings.Repeat("---|", len(t.Head)-t.Name-1-t.Metrics))
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

// Annotations writes GitHub's error lines for the verdict and rows that fail by themselves, at most ten; of a pass none.
func Annotations(w io.Writer, r *Report) error {
	if err := r.check(); err != nil || r.Verdict == Pass {
		return err
	}
	says, names := [][2]string{{strings.TrimSpace("parity " + Clean(r.Fixture)), Clean(Headline(r))}}, namingOf(r.Layers)
	for _, l := range r.rows((*Layer).fails) {
		var said []string
		for i, c := range metricCells(l) {
			if c != "" && c != noMetric {
				said = append(said, metricHeads[i]+" "+c)
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

// Clean makes a string from a dump fit to print on one line, see [sanitize.Line].
func Clean(s string) string { return sanitize.Line(s) }

// num writes a metric with three digits: "1.4e-6", "0.998", "inf".
func num(f Float) string {
	v := float64(f)
	s := strconv.FormatFloat(v, 'g', 3, 64)
	if v != 0 && math.Abs(v) < 1e-3 {
		s = strconv.FormatFloat(v, 'e', 2, 64)
	}
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !ok {
		return strings.TrimPrefix(strings.ReplaceAll(s, "Inf", "inf"), "+")
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	e, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strconv.Itoa(e)
}

// sentence makes a sentence of a clause, as verdicts and causes are written: with a capital, unless
// it begins with one of names or with what is written like the name of a layer or a number, and
// with a full stop. Empty stays empty.
func sentence(clause string, names ...string) string {
	if clause == "" {
		return ""
	}
	word, _, _ := strings.Cut(clause, " ")
	word = strings.TrimRight(word, ",:;")
	if !slices.Contains(names, word) && !strings.ContainsAny(word, "._/0123456789") {
		first, size := utf8.DecodeRuneInString(clause)
		clause = string(unicode.ToUpper(first)) + clause[size:]
	}
	if !strings.ContainsAny(clause[len(clause)-1:], ".!?") {
		clause += "."
	}
	return clause
}

func few(names []string, n int) string {
	text := strings.Join(names[:n], ", ")
	if n < len(names) {
		text += fmt.Sprintf(", … and %d more", len(names)-n)
	}
	return text
}

// count writes "1 layer", "2 layers", "2 passes".
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// are is the verb of so many things.
func are(n int) string { return map[bool]string{true: "is", false: "are"}[n == 1] }

// width is the number of columns of s, at one column a rune.
func width(s string) int { return utf8.RuneCountInString(s) }

// wrap breaks s at spaces into lines of at most n columns. A longer word has a line of its own.
func wrap(s string, n int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		switch line := &lines[len(lines)-1]; {
		case *line == "":
			*line = word
		case width(*line)+1+width(word) > n:
			lines = append(lines, word)
		default:
			*line += " " + word
		}
	}
	return lines
}

func joined(sep string, parts ...string) string { return strings.Join(filled(parts), sep) }

func filled(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
}

// once are the texts, each where it stands first.
func once(texts []string) (out []string) {
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
