package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
)

// TextOptions say how a text is written.
type TextOptions struct {
	Color   bool   // ANSI colours: for a terminal
	Width   int    // columns; 0 is 100, less than 60 is 60
	Verbose bool   // every row and every note, nothing shortened
	File    string // where the report lies, for the next command; empty: nowhere
	All     string // where what is left out can be read, "all in report.json" if empty
}

// Text writes what a report says for a terminal: the verdict first, then the place and why, the rows,
// and what was left out. It ends with where the two runs come from.
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

// printer collects the text.
type printer struct {
	bytes.Buffer
	opt TextOptions
}

// The colours, as ANSI codes.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

// colors are those of words that say how sure something is, or what came of it.
var colors = map[string]string{"proven": green, "guess": dim, string(StatusPass): green, string(StatusFail): red, string(StatusInherited): yellow,
	string(StatusMissing): red, string(StatusUnexpected): yellow, string(StatusIgnored): dim, string(StatusError): red}

var verdictColor = map[Verdict]string{Pass: green, Incomplete: yellow, Fail: red, Error: red}

// color colours s by code, if there is one.
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

// title is the verdict in a line.
func (p *printer) title(d *Document) {
	if d.Heading != "" {
		p.linef("%s", d.Heading)
	}
	if d.Fixture != "" {
		p.linef("%s", p.color(dim, d.Fixture))
	}
	p.hang("", strings.ToUpper(string(d.Verdict)), bold+";"+verdictColor[d.Verdict], d.Title, bold)
}

// section writes a section: its table, then its lines.
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
// where the line does not hold it; names and figures stay whole.
func (p *printer) table(t *Table) {
	widths, last := make([]int, len(t.Head)), len(t.Head)-1
	for i, head := range t.Head {
		for _, row := range t.Rows {
			if c := Clean(row[i]); c != "" && c != noFigure {
				widths[i] = max(widths[i], width(c), width(head))
			}
		}
	}
	widths[t.Name] = min(widths[t.Name], p.opt.Width/2) // few longer names do not move all figures
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

// line are the cells of a row in their columns: figures to the right, all others to the left.
func (t *Table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, c := range row {
		w := -widths[i]
		if i > t.Name && i <= t.Name+t.Figures {
			w = widths[i]
		}
		if w != 0 {
			fmt.Fprintf(&b, "  %*s", w, Clean(c))
		}
	}
	return b.String()
}

// hang writes a text behind what it is about; what its first line does not hold stands below its beginning.
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
