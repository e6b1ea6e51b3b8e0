package report

import (
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

// along names the execution path of the first divergence, and those that fail alike: "decode:8 and
// batch alike".
func (r *Report) along() string {
	for _, f := range r.Findings() {
		if len(f.Paths) > 1 && r.verdictRank(f) == 0 {
			return f.Names() + " alike"
		}
	}
	return Clean(r.FirstDivergence.Path)
}

// compared says how many outputs were compared. Reports that were written before outputs were counted
// say how many tensors.
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

var failWord = map[Status]string{
	StatusFail: "differs", StatusInherited: "differs", StatusMissing: "is missing",
	StatusError: "could not be compared",
}

// open is said of a place that the records leave open, in place of its kind.
const open = "This is the first output or input that differs, and what it is made of was not recorded on both sides: " +
	"the error is here or before it."

// kindText explains the kind of the first divergence in a sentence; empty for an unknown kind or none, and
// where the sentence of the place says what replay found there.
func (r *Report) kindText() string {
	d := r.FirstDivergence
	switch {
	case d != nil && d.Place != "" && r.Kind != KindPath:
		return open
	case d != nil && (d.Piece != nil || d.Text != "") && (r.Kind == "local" || r.Kind == "between"):
		return ""
	}
	return kinds[r.Kind].text
}

// what explains the first divergence: its kind, and what happened at the place.
func (r *Report) what() string {
	return strings.TrimSpace(r.kindText() + " " + r.FirstDivergence.Sentence())
}

// Found says what is wrong at the first divergence, and where that is in the code of both sides, a line each.
func (r *Report) Found() (lines []string) {
	d := r.FirstDivergence
	if d == nil {
		return nil
	}
	if what := r.what(); what != "" || r.Kind != "" {
		lines = append(lines, strings.TrimSuffix(r.Kind+": "+what, ": "))
	}
	return append(lines, d.Code()...)
}

// first is "first divergence X: activation/gelu (proven)", with the first cause where that is proven.
func (r *Report) first() string {
	if causes := r.layerCauses(); len(causes) > 0 && causes[0].Proven && r.Kind != KindWeights {
		return "first divergence " + r.Diagnosis()
	}
	return "first divergence " + r.FirstDivergence.Where() + r.FirstDivergence.At()
}

// Diagnosis is the place of the first divergence and its best cause, for the first line of a failing test;
// empty where there is none.
func (r *Report) Diagnosis() string {
	d := r.FirstDivergence
	if d == nil || d.Layer == "" {
		return ""
	}
	text := d.Where() + d.At()
	if causes := r.layerCauses(); len(causes) > 0 {
		text += fmt.Sprintf(": %s (%s)", Clean(causes[0].ID), causes[0].word())
	}
	return text
}

// Where names the place: "c, between a and b", "c, after a", "c", or "b, or between a and b".
func (d *Divergence) Where() string {
	if d.Place != "" && d.Before == "" {
		return Clean(strings.TrimPrefix(d.Place, "in "))
	}
	return Clean(d.Layer) + d.interval()
}

// interval says between which layers the place lies: ", between a and b", ", after a", or "".
func (d *Divergence) interval() string {
	switch {
	case d.After != "" && d.Before != "":
		return ", between " + Clean(d.After) + " and " + Clean(d.Before)
	case d.After != "":
		return ", after " + Clean(d.After)
	case d.Before != "":
		return ", before " + Clean(d.Before)
	}
	return ""
}

// Sentence is what happened at the place.
func (d *Divergence) Sentence() string { return sentence(d.Text, d.Layer, d.After, d.Before) }

// Code says where the place is in the code of both sides, and what its piece was replayed from, a line each.
func (d *Divergence) Code() (lines []string) {
	if d.Reference != "" {
		lines = append(lines, "reference: "+d.Reference)
	}
	if d.Candidate != "" {
		lines = append(lines, "candidate: "+d.Candidate)
	}
	if d.Piece != nil && len(d.Piece.From) > 0 {
		lines = append(lines, "replayed from the candidate's "+few(d.Piece.From, min(len(d.Piece.From), maxUnmatched)))
	}
	return lines
}

// AlsoWrong is how evidence begins that another layer makes an error of its own.
func AlsoWrong(layer string) string { return "also wrong by itself: " + layer + ", " }

// growing is the growth of a drift in one line, of some blocks, the first and the last among them; empty if
// there is none.
func (d *Divergence) growing() string {
	if len(d.Growth) < 2 {
		return ""
	}
	var parts []string
	step := max(1, (len(d.Growth)+4)/6)
	for i, b := range d.Growth {
		if i%step == 0 || i == len(d.Growth)-1 {
			parts = append(parts, fmt.Sprintf("%s %s", num(b.Error), Clean(b.Layer)))
		}
	}
	return strings.Join(parts, ", ")
}

// Summary counts the rows.
type Summary struct {
	Layers   int            `json:"layers"`   // different layers among the compared rows
	Compared int            `json:"compared"` // rows that were judged by figures: pass, fail or inherited
	Status   map[Status]int `json:"status"`   // rows by status; every status is there
}

// Count counts rows.
func Count(rows []Layer) Summary {
	s := Summary{Status: make(map[Status]int, len(statuses))}
	for _, status := range statuses {
		s.Status[status] = 0
	}
	layers := map[string]bool{}
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

// Counts says how many layers and tensors were compared, and with which result.
func Counts(r *Report) string {
	s := Count(r.Layers)
	text := s.compared()
	if counts := s.counts(); counts != "" {
		text += ": " + counts
	}
	return text
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
	actual := "replayed run"
	if s.Live {
		actual = "live run"
	}
	if date, _, _ := strings.Cut(s.Date, "T"); date != "" {
		actual += " of " + date
	}
	if e := s.Actual.String(); e != "" {
		actual += ", " + e
	}
	if e := s.Golden.String(); e != "" {
		actual += "; golden " + e
	}
	return Clean(actual)
}

// String is "max 26.7.0, cpu, float32": what is known of it, else the path.
func (e Engine) String() string {
	name := e.Name
	if v := e.Versions[e.Name]; v != "" {
		name += " " + v
	}
	var parts []string
	for _, s := range []string{name, e.Device, e.Encoding} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return e.Path
	}
	return strings.Join(parts, ", ")
}
