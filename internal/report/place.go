package report

import (
	"fmt"
	"slices"
	"strings"
)

// open is said of a place that the records leave open, in place of its kind.
const open = "This is the first output or input that differs, and what it is made of was not recorded on both sides: " +
	"the error is here or before it."

// Where names the place: "c, between a and b", "c, after a", "c", or "b, or between a and b", and the row of a run along an
// execution path.
func (d *Divergence) Where() string {
	text := d.Layer
	switch {
	case d.Place != "" && d.Before == "":
		text = strings.TrimPrefix(d.Place, "in ")
	case d.After != "" && d.Before != "":
		text += ", between " + d.After + " and " + d.Before
	case d.After != "":
		text += ", after " + d.After
	case d.Before != "":
		text += ", before " + d.Before
	}
	return Clean(text) + d.At()
}

// Found says what is wrong at the first divergence, and where that is in the code of both sides, a line each.
func (r *Report) Found() []string {
	d := r.FirstDivergence
	if d == nil {
		return nil
	}
	what := kinds[r.Kind].text
	switch {
	case d.Place != "" && r.Kind != KindPath:
		what = open
	case (d.Piece != nil || d.Text != "") && (r.Kind == "local" || r.Kind == "between"):
		what = "" // the sentence of the place says what replay found there
	}
	found := []string{joined(": ", r.Kind, joined(" ", what, sentence(d.Text, d.Layer, d.After, d.Before)))}
	for _, x := range [][2]string{{"reference: ", d.Reference}, {"candidate: ", d.Candidate}} {
		if x[1] != "" {
			found = append(found, x[0]+x[1])
		}
	}
	if d.Piece != nil && len(d.Piece.From) > 0 {
		found = append(found, "replayed from the candidate's "+few(d.Piece.From, min(len(d.Piece.From), maxLines)))
	}
	return filled(found)
}

// growing is the growth of a drift in one line, of some blocks, the first and the last among them.
func (d *Divergence) growing() string {
	var parts []string
	step := max(1, (len(d.Growth)+4)/6)
	for i, b := range d.Growth {
		if i%step == 0 || i == len(d.Growth)-1 {
			parts = append(parts, fmt.Sprintf("%s %s", num(b.Error), Clean(b.Layer)))
		}
	}
	return strings.Join(parts, ", ")
}

// first is "first divergence X: activation/gelu (proven)", with a proven cause only; empty without a layer.
func (r *Report) first() string {
	switch c := r.best(); {
	case !r.placed():
		return ""
	case c != nil && c.Proven && r.Kind != KindWeights:
		return "first divergence " + r.Diagnosis()
	}
	return "first divergence " + r.FirstDivergence.Where()
}

// Diagnosis is the place of the first divergence and its best cause; empty where there is none.
func (r *Report) Diagnosis() string {
	switch c := r.best(); {
	case !r.placed():
		return ""
	case c != nil:
		return fmt.Sprintf("%s: %s (%s)", r.FirstDivergence.Where(), Clean(c.ID), c.word())
	}
	return r.FirstDivergence.Where()
}

// Fault names the first divergence and its best cause, "a.b (norm/eps)"; empty where there is none.
func (r *Report) Fault() string {
	switch c := r.best(); {
	case !r.placed():
		return ""
	case c != nil:
		return fmt.Sprintf("%s (%s)", r.FirstDivergence.Layer, c.ID)
	}
	return r.FirstDivergence.Layer
}

// FailureText says in a few lines why one port fails: where the error is and why, as it was found in the whole run,
// then what is violated, where and how much, what was asked and where that was written, how the two sides were
// joined. What the test has told of the place before it only names.
func (l *Layer) FailureText(found *Report, told bool) string {
	port, note, tolerance := l.Layer+" "+l.Port+": ", l.Note, ""
	if told && len(l.Violations) > 0 {
		return port + strings.Join(l.Violations, "; ") + "; the first divergence is " + found.Fault() + "\n"
	}
	said, why := []string{port + strings.ToUpper(string(l.Status))}, l.Violations
	if place := found.Diagnosis(); place != "" {
		said = slices.Concat([]string{place}, found.told(), said)
		if len(why) > 0 { // which say that it fails
			said[len(said)-1], why = port+why[0], why[1:]
		}
	}
	if note != "" && l.Status != StatusError {
		note = "joined: " + note
	}
	if l.Tolerance != nil && l.Tolerance.Source != "" {
		tolerance = "tolerance: " + l.Tolerance.Source
	}
	return strings.Join(slices.Concat(said, why, l.Detail, filled([]string{tolerance, note})), "\n  ") + "\n"
}

// told is what was found, below a failing test's first line: the best cause, the place and its code, a line each.
func (r *Report) told() (lines []string) {
	cause := ""
	if c := r.best(); c != nil && c.Text != "" {
		cause = c.Sentence()
		lines = append(lines, cause+" See "+c.Doc()+".")
	}
	return append(lines, slices.DeleteFunc(r.Found(), func(line string) bool { // what the cause says already
		code, of := strings.CutPrefix(line, "reference: ")
		return of && strings.HasPrefix(cause, code)
	})...)
}

// placed reports whether the first divergence is at a layer: a drift has no place.
func (r *Report) placed() bool { return r.FirstDivergence != nil && r.FirstDivergence.Layer != "" }
