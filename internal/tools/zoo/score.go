package main

import (
	"fmt"
	"slices"
	"strings"
)

// score is the results of all cases, by name.
type score []result

// result is one case.
type result struct {
	name        string
	full, alone answer  // with all inputs, and from the two dumps alone
	naming      *naming // nil if no rules were asked for
}

// answer is what was planted and what the comparison said.
type answer struct {
	want truth
	got  report
	err  error
}

func (a answer) place() string {
	if a.err != nil {
		return "error"
	}
	return a.want.place(a.got)
}

func (a answer) cause() string {
	if a.err != nil {
		return ""
	}
	return a.want.cause(a.got)
}

// String is the grades, what was said, and what was planted where that is something else.
func (a answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("%-13s  %s", "error", strings.Join(strings.Fields(a.err.Error()), " "))
	}
	line := fmt.Sprintf("%-13s  %-11s  %s", a.place(), a.cause(), a.got.said())
	if a.place() != "ok" || !slices.Contains([]string{"", "proven", "first"}, a.cause()) {
		line += ", planted: " + strings.TrimSpace(place(a.want.Verdict, a.want.Kind, a.want.Layer)+a.want.Row.String()+" "+a.want.Cause)
	}
	return line
}

// expected reports whether truth.json implies what was said: the place is right, and the cause
// proven, if one was planted.
func (a answer) expected() bool {
	return a.place() == "ok" && (a.cause() == "" || a.cause() == "proven")
}

// String is one line, a second one where the dumps alone give another answer, and one on the joined
// layers where they are not all, or not the right ones.
func (r result) String() string { return r.lines(true) }

// lines are those of String; without all, only what truth.json does not imply.
func (r result) lines(all bool) (text string) {
	add := func(name string, said any) { text += fmt.Sprintf("%-33s  %s\n", name, said) }
	if all || !r.full.expected() {
		add(r.name, r.full)
	}
	if r.alone.String() != r.full.String() && (all || !r.full.expected() || !r.alone.expected()) {
		add(r.name+" (alone)", r.alone)
	}
	if said := r.naming.String(); said != "" {
		add(r.name+" (names)", said)
	}
	return text
}

// String is the results of all cases and the totals.
func (s score) String() string { return s.text(true) }

// kept is what the repository keeps: the totals, and the results that truth.json does not imply.
func (s score) kept() string { return s.text(false) }

func (s score) text(all bool) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(r.lines(all))
	}
	return b.String() + "\n" + s.totals()
}

// totals is how many cases have each grade.
func (s score) totals() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases\n", len(s))
	s.count(&b, "all inputs", func(r result) answer { return r.full })
	s.count(&b, "dumps alone", func(r result) answer { return r.alone })
	b.WriteString(s.named())
	b.WriteString(s.innocence())
	return b.String()
}

func (s score) count(b *strings.Builder, title string, of func(result) answer) {
	places, causes := map[string]int{}, map[string]int{}
	for _, r := range s {
		places[of(r).place()]++
		causes[of(r).cause()]++
	}
	fmt.Fprintf(b, "%s:", title)
	for _, g := range placeGrades {
		fmt.Fprintf(b, " %d %s,", places[g], g)
	}
	b.WriteString(" causes")
	for i, g := range causeGrades {
		fmt.Fprintf(b, "%s %d %s", strings.Repeat(",", min(i, 1)), causes[g], g)
	}
	b.WriteByte('\n')
}

// errors reports whether a comparison could not be made.
func (s score) errors() bool {
	return s.any(func(a answer) bool { return a.err != nil })
}

// strict reports whether no verdict, place, rule or proof is wrong, and no clean pair accused.
func (s score) strict() bool {
	for _, r := range s {
		if _, _, wrong := r.naming.joins(); len(wrong) > 0 {
			return false
		}
	}
	return !s.any(func(a answer) bool {
		return slices.Contains(placeGrades[2:], a.place()) || slices.Contains(causeGrades[4:], a.cause())
	})
}

func (s score) any(is func(answer) bool) bool {
	return slices.ContainsFunc(s, func(r result) bool { return is(r.full) || is(r.alone) })
}

// diff lists the lines that only one of two kept scores has, in the order of the cases. It is empty if
// the scores are equal.
func diff(old, now string) string {
	was, is := strings.Split(old, "\n"), strings.Split(settle(old, now), "\n")
	var lines []string
	for _, l := range was {
		if !slices.Contains(is, l) {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			lines = append(lines, "+ "+l)
		}
	}
	name := func(l string) string { return strings.Fields(l[2:] + " -")[0] }
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
