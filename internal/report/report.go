// Package report holds the result of judging one run, and writes it for its readers.
//
// A [Report] is what report.json holds (schema 1). [Write] and [Read] are its JSON form, [Text] is
// the summary that a person reads, [Markdown] and [Annotations] are for a CI's pages. Only
// [Rejudge] judges, and asks package compare: a report says what was decided.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/weights"
)

// Schema is the version of report.json that this package writes and reads.
const Schema = 1

// Verdict is the result of the whole run.
type Verdict string

const (
	Pass  Verdict = "pass"  // something was compared, and all that was judged holds
	Fail  Verdict = "fail"  // a layer is wrong or missing
	Error Verdict = "error" // nothing could be judged: no port in common, a damaged file, a dead engine

	// Incomplete: what was compared holds, but it is too little to say that the model is right.
	Incomplete Verdict = "incomplete"
)

// Status is the result of one row: one port of one layer.
type Status string

const (
	StatusPass       Status = "pass"       // compared, and within its tolerance
	StatusFail       Status = "fail"       // compared, and outside
	StatusInherited  Status = "inherited"  // outside, or inside only on wrong inputs: the layer Blame made the error
	StatusMissing    Status = "missing"    // the golden has it, the candidate should have it and has not
	StatusUnexpected Status = "unexpected" // the candidate has it, the golden should have it and has not
	StatusIgnored    Status = "ignored"    // left out on purpose, Note says why
	StatusError      Status = "error"      // could not be compared: shapes differ, a file is damaged
	NotJudged        Status = "not judged" // of a stage about which nothing is known: no row has it
)

// statuses holds the known ones, in the order in which a summary counts them.
var statuses = []Status{StatusPass, StatusFail, StatusInherited, StatusMissing, StatusUnexpected, StatusIgnored,
	StatusError}

// Report is the content of report.json. Layer names in it are the golden's own labels, unchanged.
//
// A nil FirstDivergence, Frontier, Order or Causes is null in JSON: not asked or not found out.
// An empty list means that it was asked and there is none.
type Report struct {
	Schema          int              `json:"schema"`
	Fixture         string           `json:"fixture"`            // name or path of what was judged
	Package         string           `json:"package,omitempty"`  // import path of the tests that judged; empty: no tests did
	Tests           []string         `json:"tests,omitempty"`    // names of the tests that judged, without those of their subtests
	Settings        *Settings        `json:"settings,omitempty"` // of those tests, null if all were left to their defaults
	Made            *Made            `json:"made,omitempty"`     // of two dumps; null of a fixture, and of older reports
	Verdict         Verdict          `json:"verdict"`
	Kind            string           `json:"kind"`            // of the first divergence, see KindText; or empty
	Error           string           `json:"error,omitempty"` // verdict error: what happened and what to do
	FirstDivergence *Divergence      `json:"first_divergence"`
	Frontier        []string         `json:"frontier"` // layers whose inputs agree and whose output does not
	Order           *Order           `json:"order"`
	Causes          []Cause          `json:"causes"`
	Summary         Summary          `json:"summary"` // counted from Layers by Write
	Stages          []Stage          `json:"stages"`  // see JudgedStages; set by Write
	Texts           []Prompt         `json:"texts,omitempty"`
	Weights         []weights.Result `json:"weights,omitempty"` // of what an engine loaded, each with the reference's
	Tokens          Status           `json:"tokens,omitempty"`  // whether the two runs were given the same: pass, fail or not judged
	Coverage        *Coverage        `json:"coverage"`          // null if nothing could be compared
	Source          Source           `json:"source"`
	Paths           []Path           `json:"paths,omitempty"`      // the runs along execution paths
	PathDepth       *PathDepth       `json:"path_depth,omitempty"` // their errors along the depth
	Generations     []Generation     `json:"generation,omitempty"` // of texts, token by token
	Serving         *Serving         `json:"serving,omitempty"`    // what a server answered; null if none was asked
	NotJudged       []string         `json:"not_judged,omitempty"` // what a pass does not cover
	Bisect          *Bisect          `json:"bisect,omitempty"`     // of a wrong token; set by Write
	Stretches       []Stretch        `json:"stretches,omitempty"`  // other ways to write the same, which replay found
	Costs           []Cost           `json:"costs,omitempty"`      // of the candidate's layers, where its engine measures them
	Notes           []string         `json:"notes"`                // how names and layouts were joined, what was left out
	Unmatched       Unmatched        `json:"unmatched"`
	Layers          []Layer          `json:"layers"` // one row a port, in the order in which the golden's values existed
}

// Coverage says how much of the golden the verdict is about.
type Coverage struct {
	Compared int      `json:"compared"`       // of the golden's outputs, those that were compared
	Outputs  int      `json:"outputs"`        // all of them, in all forward passes; empty ones do not count
	Open     []string `json:"open,omitempty"` // what should be covered and is not, a sentence each; a pass has none
}

// String is "compared 29 of 29 outputs".
func (c *Coverage) String() string {
	return fmt.Sprintf("compared %d of %s", c.Compared, count(c.Outputs, "output"))
}

// Divergence is the place of the first divergence.
type Divergence struct {
	Layer  string `json:"layer"`
	Port   string `json:"port"`
	Case   string `json:"case"`
	Step   string `json:"step"`
	Place  string `json:"place"`  // "in b, or between a and b", if the records do not show that it is the layer
	After  string `json:"after"`  // the layer before the place, which agrees; empty: the container's beginning
	Before string `json:"before"` // the one after it, which does not; empty: the container's end

	*Row // of a run along an execution path: the first wrong row; nil where all runs are of one pass

	Proven     bool     `json:"proven"`               // all that the layer was given is known to agree
	Uncaptured []string `json:"uncaptured,omitempty"` // inputs of the layer, or layers before it, that were not recorded, if not proven
	Text       string   `json:"text"`                 // one sentence
	Evidence   []string `json:"evidence,omitempty"`   // what else speaks for it, one sentence each
	Growth     []Growth `json:"growth,omitempty"`     // of drift, where Layer is empty: the error along the depth

	Reference string `json:"reference,omitempty"` // its code in the reference: "x.py:12 a * b to x.py:14 c + d", or "x.py:10 MLP", its class
	Candidate string `json:"candidate,omitempty"` // the class of the candidate's layer: "llama.py:88 MLP"
	Piece     *Piece `json:"piece,omitempty"`     // what replay found there; nil where the golden told
}

// Piece is the reference's code of a place, run on what the candidate had before it.
type Piece struct {
	Error    Float    `json:"local_error"` // relative L2 of what it makes and what the candidate has
	RowError Float    `json:"row_error"`   // of the worst row
	Noise    Float    `json:"noise"`       // how far rounding moves it
	From     []string `json:"from"`        // labels of the candidate's tensors that it took, in order
}

// Stretch is a part that the candidate writes in another way: other tensors, of which the same is made.
type Stretch struct {
	Case  string   `json:"case"`
	Ports []string `json:"ports"` // labels of the first forward pass that has them, in order
	Text  string   `json:"text"`  // one sentence
}

// Growth is the error of one of several blocks that are built alike: relative L2 of the worst row.
type Growth struct {
	Layer string `json:"layer"`
	Error Float  `json:"error"` // in the standard run
	Alone Float  `json:"alone"` // on golden inputs; NaN if that is not known
}

// Order says whether both sides ran their common layers in the same order: reported only, siblings may swap.
type Order struct {
	Same        bool     `json:"same"`
	N           int      `json:"n"`           // layers that differ in place
	Differences []string `json:"differences"` // the first five, as text
}

// Source says where the two sides come from.
type Source struct {
	Golden Engine `json:"golden"`
	Actual Engine `json:"actual"`
	Live   bool   `json:"live"` // the candidate ran now; false: a recorded run was judged
	Date   string `json:"date"` // of the candidate's run, as 2006-01-02 or RFC 3339; empty if not known
}

// Engine is what ran one side.
type Engine struct {
	Name     string            `json:"engine"`
	Versions map[string]string `json:"versions"` // by package, "max": "26.7.0"
	Device   string            `json:"device"`
	Encoding string            `json:"encoding"` // of the weights and activations, "float32"
	Path     string            `json:"path"`     // folder or file that was read
}

// Unmatched lists what only one side recorded.
type Unmatched struct {
	Golden []Lone `json:"golden"`
	Actual []Lone `json:"actual"`
}

// Lone is a port that the other side does not have.
type Lone struct {
	Name    string `json:"name"` // layer and port, as "model.layers.0 output"
	Case    string `json:"case,omitempty"`
	Step    string `json:"step,omitempty"`
	Shape   Shape  `json:"shape"`
	Reason  string `json:"reason"`            // why, if known
	Nearest string `json:"nearest"`           // the most similar name of the other side, if any
	Hint    string `json:"hint,omitempty"`    // lines to paste into fixture.yaml
	Ignored bool   `json:"ignored,omitempty"` // the fixture says to ignore it; Reason is the fixture's
}

// Layer is one row: one port of one layer at one step of one case.
type Layer struct {
	Layer string `json:"layer"`
	Port  string `json:"port"`
	Kind  string `json:"kind"` // PortInput, "output", …
	Case  string `json:"case"`
	Step  string `json:"step"`            // the name of the dump's folder: "0" is the prefill
	Order int    `json:"order"`           // index in the golden's recording: of the ports of a layer when it returned
	Stage string `json:"stage,omitempty"` // StagePaths or StageGeneration; empty: of one pass

	Golden *Side  `json:"golden"` // null if only the other side has it
	Actual *Side  `json:"actual"`
	Status Status `json:"status"`
	Test   string `json:"test,omitempty"`   // fail: the subtest that says so, by its full name
	Blame  string `json:"blame,omitempty"`  // inherited: the layer that made the error
	Benign bool   `json:"benign,omitempty"` // pass: the metrics differ, what they mean does not, and Note says why
	Note   string `json:"note,omitempty"`   // how this row was joined, why it is ignored, what the error was

	// Local error and noise are of the reference's piece before the port, replayed from the candidate's
	// own tensors: relative L2 of the tensor. null where it was not replayed.
	LocalError *Float `json:"local_error,omitempty"`
	Noise      *Float `json:"noise,omitempty"`

	Standard             *Metrics      `json:"standard"`
	Injected             *Metrics      `json:"injected"`
	LocalL2              *Float        `json:"local_l2"`     // ‖a_injected − g‖
	InheritedL2          *Float        `json:"inherited_l2"` // ‖a_standard − a_injected‖
	LocalInheritedCosine *Float        `json:"local_inherited_cosine"`
	Quantisation         *Quantisation `json:"quantisation,omitempty"` // what it costs the reference here
	Tolerance            *Tolerance    `json:"tolerance"`              // what judged
	Counted              *Tolerance    `json:"counted,omitempty"`      // what counted its mismatches, if it was judged again
	Violations           []string      `json:"violations,omitempty"`   // one line for each criterion that does not hold
	Detail               []string      `json:"detail,omitempty"`       // free text: where, how distributed, what would pass
	Rows                 *Rows         `json:"rows,omitempty"`         // of the first failing rows: each row of the tensor
	Histogram            *Histogram    `json:"histogram,omitempty"`    // of the same
}

// Side is one tensor of a row.
type Side struct {
	Name  string `json:"name"` // its own name there; several joined ones are separated by " + "
	DType string `json:"dtype"`
	Shape Shape  `json:"shape"`
}

// Shape is the shape of a tensor. In JSON it is always a list, [] for a scalar.
type Shape []int

// MarshalJSON writes a nil shape as [].
func (s Shape) MarshalJSON() ([]byte, error) { return json.Marshal(orEmpty([]int(s))) }

// String is "1×7×64", or "scalar".
func (s Shape) String() string {
	if len(s) == 0 {
		return "scalar"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(s)), " ", "×"), "[]")
}

// IsInput reports whether the port is what its layer was given: evidence, which alone fails no run.
func (l *Layer) IsInput() bool { return l.Kind == label.RoleInput.String() }

// Write writes r as indented JSON, with schema and summary. A report that contradicts itself is refused, see [Read].
func Write(w io.Writer, r *Report) error {
	out := *r
	out.Schema = Schema
	out.Summary = Count(r.Layers)
	out.Stages, out.Bisect = r.JudgedStages(), r.bisect()
	out.Error = sanitize.Redact(r.Error)
	out.Notes = make([]string, len(r.Notes))
	for i, note := range r.Notes {
		out.Notes[i] = sanitize.Redact(note)
	}
	out.Unmatched = Unmatched{Golden: orEmpty(r.Unmatched.Golden), Actual: orEmpty(r.Unmatched.Actual)}
	out.Layers = orEmpty(r.Layers)
	if err := out.check(); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(&out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Read reads what Write wrote. Unknown fields are skipped: later versions may add some. Another
// schema, an unknown verdict or status, and a report that contradicts itself (a pass that compared
// nothing, or that has a failing row) are errors that name the place.
func Read(r io.Reader) (*Report, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var out Report
	switch err := json.Unmarshal(data, &out); {
	case err != nil && err.Error() == "unexpected end of JSON input":
		return nil, fmt.Errorf("report: the file ends before the report does, after %d bytes: it was not written to its end", len(data))
	case err != nil:
		return nil, fmt.Errorf("report: not a report.json: %w", err)
	}
	if out.Schema != Schema {
		return nil, fmt.Errorf("report: schema %d, this version reads %d: use the parity that wrote it", out.Schema,
			Schema)
	}
	if err := out.check(); err != nil {
		return nil, err
	}
	return &out, nil
}

// check finds contradictions, so that no reader has to doubt a report: every writer here refuses them.
func (r *Report) check() error {
	if severity[r.Verdict] == 0 {
		return fmt.Errorf("report: unknown verdict %q, want pass, fail, incomplete or error", r.Verdict)
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		switch where := fmt.Sprintf("layers[%d] (%s %s)", i, l.Layer, l.Port); {
		case !slices.Contains(statuses, l.Status):
			return fmt.Errorf("report: %s: unknown status %q, want one of %q", where, l.Status, statuses)
		case r.holds() && l.Status.failing():
			return fmt.Errorf("report: verdict %s, but %s has status %q", r.Verdict, where, l.Status)
		}
	}
	switch failed := r.FirstStage(StatusFail); {
	case !r.holds():
	case failed != "":
		return fmt.Errorf("report: verdict %s, but that of %s is fail", r.Verdict, failed)
	case r.vacuous():
		return fmt.Errorf("report: verdict %s, but nothing was compared", r.Verdict)
	case r.Verdict != r.covered():
		return fmt.Errorf("report: verdict %s, but coverage says %s", r.Verdict, r.covered())
	}
	return nil
}

// vacuous reports whether nothing was compared.
func (r *Report) vacuous() bool {
	return Count(r.Layers).Compared == 0 && r.FirstStage(StatusPass) == ""
}

// holds reports whether all that was judged holds.
func (r *Report) holds() bool { return r.Verdict == Pass || r.Verdict == Incomplete }

// covered returns the verdict of a run in which all that was judged holds.
func (r *Report) covered() Verdict {
	if len(r.Open()) > 0 {
		return Incomplete
	}
	return Pass
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Save writes report.json and report.txt into a folder, which it makes; no reader sees half of one.
func Save(dir string, r *Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err := mapfile.Replace(filepath.Join(dir, "report.json"), 0o644, func(w io.Writer) error { return Write(w, r) })
	if err != nil {
		return err
	}
	return mapfile.Replace(filepath.Join(dir, "report.txt"), 0o644, func(w io.Writer) error { return Text(w, r, TextOptions{}) })
}

// Float is a float64 that JSON can hold whatever it is. A finite value is a JSON number with all
// its digits; NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", which
// Python's float() and JavaScript's Number() read.
type Float float64

// MarshalJSON writes f as a number, or as one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		text := strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+")
		return json.Marshal(strings.Replace(text, "Inf", "Infinity", 1))
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads what MarshalJSON writes; an error quotes what is no number. Null leaves f as it is.
func (f *Float) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil {
		return fmt.Errorf(`%s is not a number, nor "NaN", "Infinity" or "-Infinity"`, data)
	}
	*f = Float(v)
	return nil
}
