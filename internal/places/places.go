// Package places describes a set of row or column numbers briefly: "rows 8–15", "every 4th column,
// 0–60".
package places

import (
	"fmt"
	"strings"
)

// Places is a set as a list of runs, or as a run that repeats.
type Places struct {
	Count, Total int    // how many numbers of how many
	Spans        []Span // in order; at most 8
	More         int    // how many of Count are after the last span
}

// Span is a run of Width numbers from First. With a Period, the run repeats every Period numbers up
// to Last, which may cut the last repetition short.
type Span struct{ First, Last, Width, Period int }

// maxSpans is how many runs are listed, so that they fit into a line of a report.
const maxSpans = 8

// Text describes the places with a noun: "all 16 rows", "rows 8–15", "every 4th column, 0–60",
// "columns 32–63 of every 64, up to 511".
func (p Places) Text(noun string) string {
	switch {
	case p.Count == 0:
		return "no " + noun
	case p.Count == p.Total && p.Total > 1:
		return fmt.Sprintf("all %d %ss", p.Total, noun)
	}
	if s := p.Spans[0]; s.Period > 0 {
		if s.Width == 1 {
			return fmt.Sprintf("every %s %s, %d–%d", nth(s.Period), noun, s.First, s.Last)
		}
		return fmt.Sprintf("%ss %d–%d of every %d, up to %d", noun, s.First, s.First+s.Width-1, s.Period, s.Last)
	}
	var b strings.Builder
	b.WriteString(noun)
	if p.Count > 1 {
		b.WriteByte('s')
	}
	for i, s := range p.Spans {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", s.First)
		if s.Last > s.First {
			fmt.Fprintf(&b, "–%d", s.Last)
		}
	}
	if p.More > 0 {
		fmt.Fprintf(&b, " and %d more", p.More)
	}
	return b.String()
}

func nth(n int) string {
	suffix := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

// Set is a set of numbers from 0 to n−1.
type Set struct {
	words []uint64
	n     int
}

// NewSet returns the empty set of numbers below n.
func NewSet(n int) Set { return Set{make([]uint64, (n+63)/64), n} }

// Add adds i, 0 ≤ i < n.
func (s Set) Add(i int) { s.words[i/64] |= 1 << (i % 64) }

func (s Set) has(i int) bool { return s.words[i/64]>>(i%64)&1 != 0 }

// Places finds the runs of a set. They are a repetition if there are at least three, of equal width
// at equal distances; the last may be cut short by the end.
func (s Set) Places() Places {
	p := Places{Total: s.n}
	var first, second Span
	runs, listed, last, regular := 0, 0, 0, true
	for i := 0; i < s.n; {
		if !s.has(i) {
			i++
			continue
		}
		run := Span{First: i}
		for i < s.n && s.has(i) {
			i++
		}
		run.Last, run.Width = i-1, i-run.First
		switch {
		case runs == 0:
			first = run
		case runs == 1:
			second = run
			regular = run.Width == first.Width
		default:
			sameWidth := run.Width == first.Width || i == s.n && run.Width < first.Width
			regular = regular && sameWidth && run.First == first.First+runs*(second.First-first.First)
		}
		runs++
		p.Count += run.Width
		last = run.Last
		if len(p.Spans) < maxSpans {
			p.Spans = append(p.Spans, run)
			listed = p.Count
		}
	}
	p.More = p.Count - listed
	if runs >= 3 && regular {
		p.Spans = []Span{{First: first.First, Last: last, Width: first.Width, Period: second.First - first.First}}
		p.More = 0
	}
	return p
}

// Of is the set of the numbers i with in[i].
func Of(in []bool) Places {
	s := NewSet(len(in))
	for i, is := range in {
		if is {
			s.Add(i)
		}
	}
	return s.Places()
}
