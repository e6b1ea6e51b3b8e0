package brief

import (
	"fmt"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/report"
)

// level says how much of each part is kept, in bytes of JSON.
type level struct {
	entries, entry int // of a list
	why, text      int // of the reason for the next command, and of other sentences
	label          int // of the names that are short in sound reports: fixture, case, port
	name           int // of the names of layers and causes
	next           int // of the next command, which is kept as a whole or not at all
}

// all keeps everything.
const all = 1 << 30

// levels shorten more and more: what tells least first, the place and the cause last. The last one
// is short enough for any report.
var levels = []level{
	{all, all, all, all, all, all, all},
	{4, 200, all, all, all, all, all},
	{2, 120, 300, 300, all, all, all},
	{1, 60, 160, 200, all, all, all},
	{0, 0, 80, 120, 120, all, all},
	{0, 0, 80, 60, 60, all, all},
	{0, 0, 80, 40, 30, 200, all},
	{0, 0, 80, 40, 30, 200, 0},
	{0, 0, 60, 30, 16, 80, 0},
	{0, 0, 60, 16, 12, 50, 0},
}

// fit returns the brief in the longest form that takes no more than maxSize.
func (b *Brief) fit(write func(*Brief) []byte) (out []byte) {
	for _, l := range levels {
		if out = write(b.cut(l)); len(out) <= maxSize {
			break
		}
	}
	return out
}

// cut returns the brief with no more than a level allows.
func (b *Brief) cut(l level) *Brief {
	out := *b
	out.Fixture, out.Kind = middle(b.Fixture, l.label), middle(b.Kind, l.label)
	out.NotJudged, out.NotCovered = l.list(b.NotJudged), l.list(b.NotCovered)
	if p := b.First; p != nil {
		out.First = &Place{Layer: middle(p.Layer, l.name), Port: middle(p.Port, l.label), Case: middle(p.Case, l.label),
			Step: middle(p.Step, l.label), Place: middle(p.Place, l.name), After: middle(p.After, l.name),
			Before: middle(p.Before, l.name), Proven: p.Proven, Text: cut(p.Text, l.text), Reference: cut(p.Reference, l.text), Candidate: cut(p.Candidate, l.text)}
		if r := p.Row; r != nil {
			row := *r
			row.Path = middle(r.Path, l.label)
			out.First.Row, out.First.Alike = &row, nil
			if len(p.Alike) > 0 {
				out.First.Alike = l.list(p.Alike)
			}
		}
	}
	out.Cause = b.Cause.cut(l)
	if s := b.Second; s != nil {
		out.Second = &Second{Layer: middle(s.Layer, l.name), Text: cut(s.Text, l.text), Cause: s.Cause.cut(l)}
	}
	out.WhyNext = cut(b.WhyNext, l.why)
	if b.Next != nil && report.QuotedLen(*b.Next) > l.next {
		out.Next, out.WhyNext = nil, "the next command is too long to stand here"
	}
	return &out
}

func (c *Cause) cut(l level) *Cause {
	if c == nil {
		return nil
	}
	return &Cause{ID: middle(c.ID, l.name), Layer: middle(c.Layer, l.name), Proven: c.Proven, Text: cut(c.Text, l.text),
		Doc: middle(c.Doc, l.name)}
}

// list keeps the first entries, and says how many more there are.
func (l level) list(list []string) []string {
	out := []string{}
	for _, s := range list[:min(l.entries, len(list))] {
		out = append(out, cut(s, l.entry))
	}
	if rest := len(list) - len(out); rest > 0 {
		out = append(out, fmt.Sprintf("… and %d", rest))
	}
	return out
}

// cut keeps the beginning of a text that costs at most n, and says how much follows.
func cut(s string, n int) string {
	if report.QuotedLen(s) <= n {
		return s
	}
	kept := prefix(s, n-12)
	return fmt.Sprintf("%s… +%d", kept, utf8.RuneCountInString(s)-utf8.RuneCountInString(kept))
}

// middle keeps both ends of a name that costs at most n.
func middle(s string, n int) string {
	if report.QuotedLen(s) <= n {
		return s
	}
	front := prefix(s, (n-3)/2)
	back := s[len(front):]
	for report.QuotedLen(back) > (n-3)/2 {
		_, size := utf8.DecodeRuneInString(back)
		back = back[size:]
	}
	return front + "…" + back
}

// prefix is the longest beginning that costs at most n.
func prefix(s string, n int) string {
	spent := 0
	for i, r := range s {
		if spent += report.QuotedLen(string(r)); spent > n {
			return s[:i]
		}
	}
	return s
}
