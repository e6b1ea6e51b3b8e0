package report

import (
	"cmp"
	"fmt"
	"math"
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

// subject is the stage of the headline: the first that is wrong; of a pass the tensors, or the last that was judged.
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

func (s Status) failing() bool { return failWord[s] != "" }

// Summary counts the rows.
type Summary struct {
	Layers   int            `json:"layers"`   // different layers among the compared rows
	Compared int            `json:"compared"` // rows that were judged by metrics: pass, fail or inherited
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

// String is "replayed run of 2026-11-21, max 26.7.0, cpu, float32; golden torch 2.15.0, cpu, float32".
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

// open is said of a place that the records leave open, in place of its kind.
const open = "This is the first output or input that differs, and what it is made of was not recorded on both sides: " +
	"the error is here or before it."

// Where names the place: "c, between a and b", "c, after a", "b, or between a and b", and the row of a path's run.
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

// causeDoc is the catalogue of causes, where each family of ids has a section.
const causeDoc = "docs/causes.md"

// Cause is one hypothesis on why the first divergence happens.
type Cause struct {
	ID        string `json:"id"` // stable, such as "activation/gelu-tanh"
	Layer     string `json:"layer"`
	Proven    bool   `json:"proven"`     // the prediction fits the candidate about as well as clean layers fit
	Fit       Float  `json:"fit"`        // relative L2 of the candidate against the prediction; "NaN" without one
	FitGolden Float  `json:"fit_golden"` // relative L2 of the candidate against the golden
	Text      string `json:"text"`
	// Next is the id of the next best prediction, of the first cause where that is not proven, and NextFit
	// its relative L2.
	Next    string `json:"next,omitempty"`
	NextFit Float  `json:"next_fit,omitempty"`
	Edit    *Edit  `json:"edit,omitempty"` // of the reference's program, that makes what the candidate has
}

// Edit is a change of the reference's program.
type Edit struct {
	Kind     string   `json:"kind"`
	Operator string   `json:"operator,omitempty"` // "aten.mul.Tensor"
	At       string   `json:"at,omitempty"`       // "layers.3.mixer:17", as parity compare --edit takes it
	Text     string   `json:"text"`
	Lines    []string `json:"lines,omitempty"` // of the reference's source: "modeling_x.py:15"
	Code     []string `json:"code,omitempty"`  // the expressions that are changed: "modeling_x.py:15 x * self.scale"
	Weight   string   `json:"weight,omitempty"`
	Fit      Float    `json:"fit"`
	Twins    []int    `json:"twins,omitempty"`  // in how many layers it is found, of how many that have this code
	Others   []string `json:"others,omitempty"` // edits that fit as well
}

// word is "proven" or "guess".
func (c Cause) word() string { return map[bool]string{true: "proven", false: "guess"}[c.Proven] }

// Evidence says in metrics what speaks for the cause; without a prediction there is one metric only.
func (c Cause) Evidence() string {
	switch predicts := !math.IsNaN(float64(c.Fit)); {
	case predicts && c.FitGolden == 0:
		return "fits the candidate, its NaN and infinities included, which the golden has not; the finite numbers are right"
	case predicts && c.Proven:
		return fmt.Sprintf("fits the candidate to %s, the golden only to %s", num(c.Fit), num(c.FitGolden))
	case predicts:
		text := fmt.Sprintf("fits the candidate to %s, the golden only to %s: it explains %s of the squared error", num(c.Fit), num(c.FitGolden), c.share(c.Fit))
		if c.Next != "" {
			text += fmt.Sprintf(", the next best, %s, %s", c.Next, c.share(c.NextFit))
		}
		return text
	case c.Proven:
		return "proven without numbers: by what was recorded"
	case c.FitGolden > 0:
		return fmt.Sprintf("unproven: it predicts no numbers; the golden fits the candidate to %s", num(c.FitGolden))
	}
	return "unproven: it predicts no numbers"
}

// share is the part of the squared error that a prediction explains: "94 %".
func (c Cause) share(fit Float) string {
	share := max(0, 1-math.Pow(float64(fit/c.FitGolden), 2))
	if share >= nearlyAll {
		return "nearly all"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// Sentence is what the cause is.
func (c Cause) Sentence() string { return sentence(c.Text, c.Layer) }

// Doc is the section of the catalogue about the cause.
func (c Cause) Doc() string {
	family, _, _ := strings.Cut(c.ID, "/")
	return causeDoc + "#" + family
}

func docs(causes []Cause) string {
	var out []string
	for _, c := range causes {
		out = append(out, strings.TrimPrefix(c.Doc(), causeDoc))
	}
	return causeDoc + strings.Join(once(out), ", ")
}

func (c *Cause) lines(said ...string) []Line {
	out := []Line{{Lead: c.word(), Code: c.ID}}
	if c.Layer != "" { // which computes it
		out[0].Text = "at " + Clean(c.Layer)
	}
	for _, text := range filled(said) {
		out = append(out, Line{Text: text, Level: 1})
	}
	out[len(out)-1].Cause = c.ID
	return out
}
