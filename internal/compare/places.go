package compare

import (
	"fmt"
	"strings"
)

// Places is a set of row or column numbers, as a list of runs or as a run that repeats.
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

// PlacesOf finds the runs of the numbers i with in[i]. They are a repetition if there are at least three, of
// equal width at equal distances; the last may be cut short by the end.
func PlacesOf(in []bool) Places {
	p := Places{Total: len(in)}
	last := 0
	for i := 0; i < len(in); {
		if !in[i] {
			i++
			continue
		}
		run := Span{First: i}
		for i < len(in) && in[i] {
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
		if all.repeats(in) {
			p.Spans, p.More = []Span{all}, 0
		}
	}
	return p
}

// repeats reports whether a set is the run, again and again.
func (r Span) repeats(in []bool) bool {
	for i := r.First; i <= r.Last; i++ {
		if in[i] != ((i-r.First)%r.Period < r.Width) {
			return false
		}
	}
	return r.Last == len(in)-1 || (r.Last-r.First)%r.Period == r.Width-1
}
