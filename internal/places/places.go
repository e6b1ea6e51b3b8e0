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
	if p.Count > 1 {
		noun += "s"
	}
	list := make([]string, len(p.Spans))
	for i, s := range p.Spans {
		list[i] = fmt.Sprint(s.First)
		if s.Last > s.First {
			list[i] += fmt.Sprintf("–%d", s.Last)
		}
	}
	text := noun + " " + strings.Join(list, ", ")
	if p.More > 0 {
		text += fmt.Sprintf(" and %d more", p.More)
	}
	return text
}

func nth(n int) string {
	suffix := map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	if suffix == "" || n%100/10 == 1 {
		suffix = "th"
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
	last := 0
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
		p.Count += run.Width
		last = run.Last
		if len(p.Spans) < maxSpans {
			p.Spans = append(p.Spans, run)
		} else {
			p.More += run.Width
		}
	}
	if len(p.Spans) > 2 {
		all := p.Spans[0]
		all.Last, all.Period = last, p.Spans[1].First-all.First
		if s.repeats(all) {
			p.Spans, p.More = []Span{all}, 0
		}
	}
	return p
}

// repeats reports whether the set is a run that repeats.
func (s Set) repeats(r Span) bool {
	for i := r.First; i <= r.Last; i++ {
		if s.has(i) != ((i-r.First)%r.Period < r.Width) {
			return false
		}
	}
	return r.Last == s.n-1 || (r.Last-r.First)%r.Period == r.Width-1
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
