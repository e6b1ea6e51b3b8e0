package report

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// TextOptions say how Text writes.
type TextOptions struct {
	Color   bool   // ANSI colours: for a terminal
	Width   int    // columns; 0 is 100, less than 60 is 60
	Verbose bool   // every row and every note, nothing shortened
	File    string // where the report lies, for the next command; empty: nowhere
	All     string // where what is left out can be read, "all in report.json" if empty
}

// printer collects the text.
type printer struct {
	bytes.Buffer
	opt   TextOptions
	names naming
}

// newPrinter prints rows; a width that is not given is 100.
func newPrinter(opt TextOptions, rows []Layer) *printer {
	opt.Width = max(cmp.Or(opt.Width, 100), 60)
	return &printer{opt: opt, names: namingOf(rows)}
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

// hang writes text wrapped at the width: lead before its first line, written as shown, with colours, and its other
// lines below the text.
func (p *printer) hang(indent, lead, shown, text string) {
	hang := indent + strings.Repeat(" ", width(lead))
	for i, line := range wrap(Clean(text), max(p.opt.Width-width(hang), 30)) {
		if i == 0 {
			p.linef("%s%s%s", indent, shown, line)
		} else {
			p.linef("%s%s", hang, line)
		}
	}
}

func (p *printer) more(n int, what string) {
	if n > 0 {
		p.linef("  %s",
			p.color(dim, fmt.Sprintf("… and %d more%s, %s", n, what, cmp.Or(p.opt.All, "all in report.json"))))
	}
}
