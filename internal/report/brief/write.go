package brief

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// JSON returns the brief as one line of JSON, at most 2,048 bytes with its line break.
func (b *Brief) JSON() []byte { return b.fit((*Brief).json) }

func (b *Brief) json() []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil {
		panic(err) // strings and numbers can be written
	}
	return out.Bytes()
}

// Text returns the brief in a few lines, at most 2,048 bytes. No line is broken: the command can be
// copied.
func (b *Brief) Text() []byte { return b.fit((*Brief).text) }

func (b *Brief) text() []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	head := strings.ToUpper(string(b.Verdict)) + ": " + b.Fixture
	if b.Compared != nil {
		head += fmt.Sprintf(", compared %d of %d outputs", *b.Compared, *b.Outputs)
	}
	line("%s, stage %s", head, b.Stage)
	if p := b.First; p != nil {
		line("place: %s", p.where(b.Kind))
		if p.Text != "" {
			line("  %s", p.Text)
		}
		if p.Reference != "" {
			line("  reference: %s", p.Reference)
		}
		if p.Candidate != "" {
			line("  candidate: %s", p.Candidate)
		}
		if p.Port+p.Case+p.Step != "" {
			line("  port %s, case %s, step %s", orNone(p.Port), orNone(p.Case), orNone(p.Step))
		}
		if p.Row != nil {
			line("  path %s", p.Row.Path)
		}
		if len(p.Alike) > 0 {
			line("  alike along %s", strings.Join(p.Alike, ", "))
		}
	}
	cause := func(indent string, c *Cause) {
		at := ""
		if c.Layer != "" { // else no layer computes it
			at = " at " + c.Layer
		}
		line("%scause: %s, %s%s", indent, word(c.Proven, "proven", "guess"), c.ID, at)
		line("%s  %s", indent, c.Text)
		line("%s  %s", indent, c.Doc)
	}
	if b.Cause != nil {
		cause("", b.Cause)
	}
	if s := b.Second; s != nil {
		line("second fault: %s", s.Layer)
		if s.Text != "" {
			line("  %s", s.Text)
		}
		if s.Cause != nil {
			cause("  ", s.Cause)
		}
	}
	for _, t := range b.NotCovered {
		line("not covered: %s", t)
	}
	for _, t := range b.NotJudged {
		line("not judged: %s", t)
	}
	if b.Next != nil {
		line("next: %s", *b.Next)
		line("  %s", b.WhyNext)
	} else {
		line("next: %s", b.WhyNext)
	}
	return out.Bytes()
}

// where is the place in words, with the kind and whether it is proven.
func (p *Place) where(kind string) string {
	at := p.Layer
	switch {
	case p.Place != "":
		at = p.Place
	case p.Layer == "":
		at = "no layer"
	case p.After != "" && p.Before != "":
		at += ", between " + p.After + " and " + p.Before
	case p.After != "":
		at += ", after " + p.After
	case p.Before != "":
		at += ", before " + p.Before
	}
	return fmt.Sprintf("%s%s (%s, %s)", at, p.At(), kind, word(p.Proven, "proven", "open"))
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
