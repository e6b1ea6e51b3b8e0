package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Headline is the verdict in one line, without the word pass, fail, incomplete or error.
func Headline(r *Report) string {
	switch {
	case r.Error == "" && r.ofGeneration():
		return generationHeadline(r)
	case r.Verdict == Fail || r.Verdict == Pass:
		return stageNamed(r.subject()).headline(r)
	case r.Verdict == Incomplete:
		open, rest := r.Open(), ""
		if len(open) > 1 {
			rest = fmt.Sprintf(" (and %d more)", len(open)-1)
		}
		return r.compared() + ", which hold; " + Clean(open[0]) + rest
	case r.Error != "":
		return Clean(r.Error)
	}
	if l := r.divergent(); l != nil {
		return fmt.Sprintf("%s %s: %s", namingOf(r.Layers).row(l), failWord[l.Status], Clean(l.why()))
	}
	return "nothing was compared"
}

// subject is the stage that the headline is about: the first that is wrong, or of a pass the tensors, or where there are
// none the last that was judged.
func (r *Report) subject() string {
	if r.Verdict == Fail {
		return r.stage()
	}
	if !slices.ContainsFunc(r.worst(), func(l *Layer) bool { return l.Stage != StageGeneration }) {
		for _, s := range slices.Backward(stages()) {
			if s.status(r) == StatusPass && s.headline(r) != "" {
				return s.name
			}
		}
	}
	return StageTensors
}

// ofGeneration reports whether a report is about nothing but a generation.
func (r *Report) ofGeneration() bool { return r.Made != nil && len(r.Generations) > 0 }

// compared says how many outputs were compared, or tensors: older reports do not count outputs.
func (r *Report) compared() string {
	if r.Coverage == nil {
		return Count(r.Layers).compared()
	}
	return r.Coverage.String()
}

// Open lists what should be covered and is not, a sentence each.
func (r *Report) Open() []string {
	if r.Coverage == nil {
		return nil
	}
	return r.Coverage.Open
}

// OpenHelp says what to do about [Report.Open].
const OpenHelp = "join what has another name: parity names; record what is missing, or say what need not be compared: ignore: in " +
	"fixture.yaml with the reason; to judge a part of the model only: scope: in fixture.yaml, --scope LAYER"

var failWord = map[Status]string{StatusFail: "differs", StatusInherited: "differs", StatusMissing: "is missing",
	StatusError: "could not be compared"}

// failing reports whether one of it keeps a run from passing.
func (s Status) failing() bool { return failWord[s] != "" }

// Summary counts the rows.
type Summary struct {
	Layers   int            `json:"layers"`   // different layers among the compared rows
	Compared int            `json:"compared"` // rows that were judged by figures: pass, fail or inherited
	Status   map[Status]int `json:"status"`   // rows by status; every status is there
}

// Count counts rows.
func Count(rows []Layer) Summary {
	s, layers := Summary{Status: make(map[Status]int, len(statuses))}, map[string]bool{}
	for _, status := range statuses {
		s.Status[status] = 0
	}
	for i := range rows {
		s.Status[rows[i].Status]++
		if rows[i].compared() {
			s.Compared++
			layers[rows[i].Layer] = true
		}
	}
	s.Layers = len(layers)
	return s
}

// compared is "29 layers, 194 tensors compared".
func (s Summary) compared() string {
	return count(s.Layers, "layer") + ", " + count(s.Compared, "tensor") + " compared"
}

// counts is "170 pass, 3 fail, 21 inherited".
func (s Summary) counts() string {
	var parts []string
	for _, status := range statuses {
		if n := s.Status[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}

// String is the source in one line: "replayed run of 2026-11-21, max 26.7.0, cpu, float32; golden
// torch 2.15.0, cpu, float32".
func (s Source) String() string {
	actual, golden := "replayed run", s.Golden.String()
	if s.Live {
		actual = "live run"
	}
	if date, _, _ := strings.Cut(s.Date, "T"); date != "" {
		actual += " of " + date
	}
	if golden != "" {
		golden = "golden " + golden
	}
	return Clean(joined("; ", joined(", ", actual, s.Actual.String()), golden))
}

// String is "max 26.7.0, cpu, float32": what is known of it, else the path.
func (e Engine) String() string {
	return cmp.Or(joined(", ", joined(" ", e.Name, e.Versions[e.Name]), e.Device, e.Encoding), e.Path)
}
