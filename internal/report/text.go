package report

import (
	"io"
	"strings"
)

// Text writes what a report says for a terminal: the verdict first, then the place and why, the rows,
// and what was left out. It ends with where the two runs come from.
func Text(w io.Writer, r *Report, opt TextOptions) error {
	return r.Document(View{Verbose: opt.Verbose, File: opt.File}).Text(w, opt)
}

// Text writes a document for a terminal.
func (d *Document) Text(w io.Writer, opt TextOptions) error {
	if err := d.of.check(); err != nil {
		return err
	}
	p := newPrinter(opt, d.of.Layers)
	if d.Title != "" {
		p.title(d)
	}
	for i := range d.Sections {
		p.write(d.of, &d.Sections[i])
	}
	_, err := w.Write(p.Bytes())
	return err
}

// title is the verdict in a line.
func (p *printer) title(d *Document) {
	if d.Heading != "" {
		p.linef("%s", d.Heading)
	}
	if d.Fixture != "" {
		p.linef("%s", p.color(dim, d.Fixture))
	}
	lead, shown := "", ""
	if word := strings.ToUpper(string(d.Verdict)); word != "" {
		lead, shown = word+": ", p.color(bold+";"+verdictColor[d.Verdict], word)+": "
	}
	for i, line := range wrap(d.Title, p.opt.Width-width(lead)) {
		if i > 0 {
			shown = strings.Repeat(" ", width(lead))
		}
		p.linef("%s%s", shown, p.color(bold, line))
	}
}

var verdictColor = map[Verdict]string{Pass: green, Incomplete: yellow, Fail: red, Error: red}

// write writes a section: its table or rows, then its lines.
func (p *printer) write(r *Report, s *Section) {
	indent := "  "
	if s.Heading != "" {
		p.linef("\n%s", p.color(bold, Clean(s.Heading)))
	} else if s.ID == SectionSource || s.ID == SectionNext {
		p.linef("")
		indent = ""
	}
	if s.Table != nil {
		p.words(s.Table)
	}
	if s.Rows != nil {
		p.rows(s.Rows, r.divergent(), r.FirstDivergence == nil || r.FirstDivergence.Layer != "")
	}
	for _, l := range s.Lines {
		p.line(indent, l)
	}
	p.more(s.More, s.What)
}

// leadColor is that of words that say how sure something is.
var leadColor = map[string]string{"proven": green, "guess": dim}

func (p *printer) line(indent string, l Line) {
	indent += strings.Repeat("    ", l.Level)
	lead, text := l.Lead, strings.TrimSpace(l.Code+" "+l.Text)
	if lead != "" {
		lead += ": "
	}
	if l.Paste {
		p.linef("%s%s%s", indent, lead, Clean(l.Text))
		return
	}
	shown := lead
	if code, colored := leadColor[l.Lead]; colored {
		shown = p.color(code, l.Lead) + ": "
	}
	p.hang(indent, lead, shown, text)
}

// words writes a table in columns, or where a line does not hold one of words, each row as a paragraph.
func (p *printer) words(t *Table) {
	widths, sum := make([]int, len(t.Head)), 0
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], width(Clean(c)))
		}
	}
	for _, w := range widths {
		sum += w + 2
	}
	rows := t.Rows
	if t.Figures > 0 {
		rows = append([][]string{t.Head}, rows...)
	}
	for _, row := range rows {
		if sum <= p.opt.Width || t.Figures > 0 {
			var b strings.Builder
			for i, c := range row {
				if c = Clean(c); i > 0 && i <= t.Figures {
					b.WriteString("  " + padLeft(c, widths[i]))
				} else {
					b.WriteString("  " + pad(c, widths[i]))
				}
			}
			p.linef("%s", b.String())
			continue
		}
		var said []string
		for i, c := range row[1:] {
			if c != "" {
				said = append(said, t.Head[i+1]+": "+c)
			}
		}
		p.hang("  ", "", "", t.Head[0]+" "+row[0]+": "+strings.Join(said, "; "))
	}
}
