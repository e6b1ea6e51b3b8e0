package brief

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/report"
)

// JSON returns the brief as one line of JSON, at most 2,048 bytes with its line break.
func (b *Brief) JSON() []byte { return fit(func(n int) []byte { return b.cut(n).json() }) }

func (b *Brief) json() []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil {
		panic(err) // strings and numbers can be written
	}
	return out.Bytes()
}

// Text returns the report in a few lines, at most 2,048 bytes. No line is broken: the command can be
// copied.
func (b *Brief) Text() []byte {
	return fit(func(n int) []byte {
		d := b.report.Document(report.View{Short: true, File: b.file})
		if b.Second != nil {
			at := 0
			for at < len(d.Sections) && d.Sections[at].ID != report.SectionJudged {
				at++
			}
			d.Sections = append(d.Sections[:at:at], append([]report.Section{b.Second.section()}, d.Sections[at:]...)...)
		}
		d.Fixture, d.Title = middle(d.Fixture, max(2*n, leastName)), cut(d.Title, max(2*n, leastName))
		for i := range d.Sections {
			shorten(&d.Sections[i], n)
		}
		var out bytes.Buffer
		if err := d.Text(&out, report.TextOptions{Width: math.MaxInt32, All: "all in report.json"}); err != nil {
			return []byte(report.Clean(err.Error()) + "\n")
		}
		return out.Bytes()
	})
}

// section says what is wrong besides the place.
func (s *Second) section() report.Section {
	out := report.Section{Heading: "Second fault", Lines: []report.Line{{Code: s.Layer, Text: s.Text}}}
	if s.Cause != nil {
		out.Lines = append(out.Lines, report.Line{Lead: s.Cause.word(), Code: s.Cause.ID, Text: s.Cause.Text + "; see " + s.Cause.Doc})
	}
	return out
}

func (c *Cause) word() string { return report.Cause{Proven: c.Proven}.Word() }

// shorten leaves the first lines of a section, each of at most n bytes.
func shorten(s *report.Section, n int) {
	if most := max(n/leastName, 2); len(s.Lines) > most+1 {
		s.More += len(s.Lines) - most
		s.Lines = s.Lines[:most]
	}
	s.Heading = cut(s.Heading, leastName)
	lines := s.Lines
	s.Lines = nil
	for _, l := range lines {
		if l.Paste && n == leastText { // a command that is cut is none
			l = report.Line{Lead: l.Lead, Text: tooLong}
		}
		if !l.Paste {
			l.Text = cut(strings.TrimSpace(report.Clean(l.Text)), n)
		}
		l.Code = middle(report.Clean(l.Code), max(2*n, leastName))
		s.Lines = append(s.Lines, l)
	}
}

const tooLong = "the next command is too long to stand here"

// fit returns the longest form that takes no more than maxSize: how much a sentence or a list may take is halved
// until it does, a name keeps twice that. The last form is short enough for any report.
func fit(write func(n int) []byte) (out []byte) {
	for n := maxSize; n >= leastText; n /= 2 {
		if out = write(n); len(out) <= maxSize {
			break
		}
	}
	return out
}
