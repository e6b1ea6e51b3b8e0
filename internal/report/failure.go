package report

import (
	"fmt"
	"slices"
	"strings"
)

// FailureText says in a few lines why one port fails: where the error is and why, as it was found in the whole run,
// then what is violated, where and how much, what was asked and where that was written, how the two sides were
// joined. What the test has told of the place before it only names.
func (l *Layer) FailureText(found *Report, told bool) string {
	port, fault := l.Layer+" "+l.Port+": ", found.Fault()
	said := slices.Concat(l.Violations, l.Detail)
	switch {
	case l.Status == StatusError:
		said = []string{port + "ERROR", l.Note}
	case told && len(l.Violations) > 0:
		said = []string{port + strings.Join(l.Violations, "; ") + "; the first divergence is " + fault}
	default:
		if l.Tolerance != nil && l.Tolerance.Source != "" {
			said = append(said, "tolerance: "+l.Tolerance.Source)
		}
		if l.Note != "" {
			said = append(said, "joined: "+l.Note)
		}
		if fault == "" {
			said = append([]string{port + strings.ToUpper(string(l.Status))}, said...)
			break
		}
		if len(said) > 0 {
			said[0] = port + said[0]
		}
		said = slices.Concat([]string{found.Diagnosis()}, found.Told(), said)
	}
	return strings.Join(said, "\n  ") + "\n"
}

// Fault names the first divergence and its best cause, "a.b (norm/eps)"; empty where there is none.
func (r *Report) Fault() string {
	d := r.FirstDivergence
	if d == nil || d.Layer == "" {
		return ""
	}
	if causes := r.layerCauses(); len(causes) > 0 {
		return fmt.Sprintf("%s (%s)", d.Layer, causes[0].ID)
	}
	return d.Layer
}

// Told says what was found, below a failing test's first line: the best cause, the place and its code, a line each.
func (r *Report) Told() (lines []string) {
	cause := ""
	if causes := r.layerCauses(); len(causes) > 0 && causes[0].Text != "" {
		cause = causes[0].Sentence()
		lines = append(lines, cause+" See "+causes[0].Doc()+".")
	}
	return append(lines, slices.DeleteFunc(r.Found(), func(line string) bool { // what the cause says already
		code, of := strings.CutPrefix(line, "reference: ")
		return of && strings.HasPrefix(cause, code)
	})...)
}
