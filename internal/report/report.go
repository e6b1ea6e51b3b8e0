package report

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/goparity/goparity/compare"
)

// Schema is the version of report.json that this package writes and reads.
const Schema = 1

// Verdict is the result of the whole run.
type Verdict string

// The verdicts.
const (
	Pass  Verdict = "pass"  // something was compared, and all that was judged holds
	Fail  Verdict = "fail"  // a layer is wrong or missing
	Error Verdict = "error" // no judgement was possible: nothing could be compared, a file is damaged, an engine died
)

// Status is the result of one row: one port of one layer.
type Status string

// The statuses.
const (
	StatusPass       Status = "pass"       // compared, and within its tolerance
	StatusFail       Status = "fail"       // compared, and outside
	StatusInherited  Status = "inherited"  // outside, or inside only on wrong inputs: the error was made in the layer Blame
	StatusMissing    Status = "missing"    // the golden has it, the candidate should have it and has not
	StatusUnexpected Status = "unexpected" // the candidate has it, the golden should have it and has not
	StatusIgnored    Status = "ignored"    // left out on purpose, Note says why
	StatusError      Status = "error"      // could not be compared: shapes differ, a file is damaged
)

// statuses holds the known ones, in the order in which a summary counts them.
var statuses = []Status{StatusPass, StatusFail, StatusInherited, StatusMissing, StatusUnexpected, StatusIgnored, StatusError}

// The kinds of a port, as Layer.Kind has them.
const (
	PortInput    = "input"    // what the layer was given
	PortComputed = "computed" // injected run: what the candidate had computed for an input before it was replaced
	PortOutput   = "output"   // what the layer returned
	PortTap      = "tap"      // saved by hand
)

// KindOf is the kind of a port by its name: "input_0" is an input, "computed_1" a computed one, "tap" a tap, all others
// are outputs.
func KindOf(port string) string {
	switch {
	case strings.HasPrefix(port, PortInput+"_"):
		return PortInput
	case strings.HasPrefix(port, PortComputed+"_"):
		return PortComputed
	case port == PortTap:
		return PortTap
	}
	return PortOutput
}

// Report is the content of report.json. Layer names in it are the golden's own labels, unchanged.
//
// A nil FirstDivergence, Frontier, Order or Causes is null in JSON: not asked or not found out.
// An empty list means that it was asked and there is none.
type Report struct {
	Schema          int         `json:"schema"`
	Fixture         string      `json:"fixture"` // name or path of what was judged
	Verdict         Verdict     `json:"verdict"`
	Kind            string      `json:"kind"`            // of the first divergence: input, weights, capture, interaction, between, local, drift, unordered; or empty
	Error           string      `json:"error,omitempty"` // verdict error: what happened and what to do
	FirstDivergence *Divergence `json:"first_divergence"`
	Frontier        []string    `json:"frontier"` // layers whose inputs agree and whose output does not
	Order           *Order      `json:"order"`
	Causes          []Cause     `json:"causes"`
	Summary         Summary     `json:"summary"` // counted from Layers by Write
	Source          Source      `json:"source"`
	NotJudged       []string    `json:"not_judged,omitempty"` // what a pass does not cover: steps and final outputs that the candidate lacks
	Notes           []string    `json:"notes"`                // how names and layouts were joined, what was not looked at
	Unmatched       Unmatched   `json:"unmatched"`
	Layers          []Layer     `json:"layers"` // one row a port, in the golden's execution order
}

// Divergence is the place of the first divergence.
type Divergence struct {
	Layer  string `json:"layer"`
	Port   string `json:"port"`
	Case   string `json:"case"`
	Step   string `json:"step"`
	After  string `json:"after"`  // the place lies after this layer, which agrees; empty: from the container's beginning
	Before string `json:"before"` // and before this one, which does not; empty: up to the container's end

	Proven     bool     `json:"proven"`               // all that the layer was given is known to agree
	Uncaptured []string `json:"uncaptured,omitempty"` // inputs of the layer that were not recorded, if not proven
	Text       string   `json:"text,omitempty"`       // one sentence
	Evidence   []string `json:"evidence,omitempty"`   // what else speaks for it, one sentence each
	Growth     []Growth `json:"growth,omitempty"`     // of drift, which no layer made (Layer is empty): the error along the depth
}

// Growth is the error of one of several blocks that are built alike: relative L2 of the worst row.
type Growth struct {
	Layer string `json:"layer"`
	Error Float  `json:"error"` // in the standard run
	Alone Float  `json:"alone"` // on golden inputs; NaN if that is not known
}

// Order says whether both sides ran the layers that they share in the same order.
// It is reported only: independent siblings may swap.
type Order struct {
	Same        bool     `json:"same"`
	N           int      `json:"n"`           // layers that differ in place
	Differences []string `json:"differences"` // the first five, as text
}

// Cause is one hypothesis on why the first divergence happens.
type Cause struct {
	ID        string `json:"id"` // stable, such as "activation/gelu-tanh"
	Layer     string `json:"layer"`
	Proven    bool   `json:"proven"`     // the prediction fits the candidate about as well as clean layers fit
	Fit       Float  `json:"fit"`        // relative L2 of the candidate against the prediction; "NaN" for a pattern without one
	FitGolden Float  `json:"fit_golden"` // relative L2 of the candidate against the golden
	Text      string `json:"text"`
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
	Kind  string `json:"kind"` // PortInput, PortOutput, …
	Case  string `json:"case"`
	Step  string `json:"step"`  // the name of the dump's folder: "0" is the prefill
	Order int    `json:"order"` // execution index in the golden

	Golden *Side  `json:"golden"` // null if only the other side has it
	Actual *Side  `json:"actual"`
	Status Status `json:"status"`
	Blame  string `json:"blame,omitempty"` // inherited: the layer that made the error
	Note   string `json:"note,omitempty"`  // how this row was joined, why it is ignored, what the error was

	Standard             *Metrics   `json:"standard"`
	Injected             *Metrics   `json:"injected"`
	LocalL2              *Float     `json:"local_l2"`     // ‖a_injected − g‖
	InheritedL2          *Float     `json:"inherited_l2"` // ‖a_standard − a_injected‖
	LocalInheritedCosine *Float     `json:"local_inherited_cosine"`
	Tolerance            *Tolerance `json:"tolerance"`            // what judged
	Counted              *Tolerance `json:"counted,omitempty"`    // by which the mismatches were counted, if that is not Tolerance: the row was judged anew
	Violations           []string   `json:"violations,omitempty"` // one line for each criterion that does not hold
	Detail               []string   `json:"detail,omitempty"`     // free text: where, how distributed, what would pass
	Rows                 *Rows      `json:"rows,omitempty"`       // of the first failing rows: how far off each row of the tensor is
	Histogram            *Histogram `json:"histogram,omitempty"`  // of the same
}

// Rows is the relative L2 of each row of a tensor (as row_rel_l2 has it), in at most 256 bins of neighbours; of a bin the worst counts.
type Rows struct {
	N     int     `json:"n"`      // rows; bin i has the rows from ⌈i·N/bins⌉ on
	RelL2 []Float `json:"rel_l2"` // by bin; Infinity where a NaN or an infinity has no match
}

// maxBins is how many bins Rows has at most.
const maxBins = 256

// RowsOf bins the rows of a pair.
func RowsOf(lines []compare.Line) *Rows {
	n := len(lines)
	if n == 0 {
		return nil
	}
	r := &Rows{N: n, RelL2: make([]Float, min(n, maxBins))}
	for i, l := range lines {
		off := Float(l.RelL2)
		if l.BadNonFinite > 0 {
			off = Float(math.Inf(1))
		}
		bin := &r.RelL2[i*len(r.RelL2)/n]
		*bin = max(*bin, off)
	}
	return r
}

// Histogram counts the finite pairs of a tensor by |a − g|: Counts[i] of them have 10^(Exponent+i) ≤ |a − g| < 10^(Exponent+i+1).
type Histogram struct {
	Equal    int   `json:"equal"` // a = g
	Exponent int   `json:"exponent"`
	Counts   []int `json:"counts"`
}

// HistogramOf is the histogram of a pair.
func HistogramOf(d compare.Detail) *Histogram {
	h := &Histogram{Equal: d.Equal, Counts: make([]int, len(d.Decades))}
	for i, x := range d.Decades {
		h.Counts[i] = x.Count
	}
	if len(d.Decades) > 0 {
		h.Exponent = d.Decades[0].Exponent
	}
	return h
}

// Side is one tensor of a row.
type Side struct {
	Name  string `json:"name"` // its own name on that side; several joined ones are separated by " + "
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
	parts := make([]string, len(s))
	for i, n := range s {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, "×")
}

// Metrics are the figures of one pair, golden g and actual a. Maxima and sums run over the n_finite pairs in which
// both are finite, the others are counted. An index is per axis ([] for a scalar), null if there is none.
type Metrics struct {
	N            int `json:"n"`              // elements compared
	Finite       int `json:"n_finite"`       // pairs of two finite values
	Mismatches   int `json:"mismatches"`     // not (|a − g| ≤ atol + rtol·|g|)
	BadNonFinite int `json:"bad_non_finite"` // mismatches among the other pairs

	MaxAbs       Float `json:"max_abs"` // max |a − g|
	MaxAbsIndex  []int `json:"max_abs_index"`
	MaxAbsGolden Float `json:"max_abs_golden"`
	MaxAbsActual Float `json:"max_abs_actual"`

	MaxRel       Float `json:"max_rel"` // max |a − g| / max(|g|, 1e-10)
	MaxRelIndex  []int `json:"max_rel_index"`
	MaxRelGolden Float `json:"max_rel_golden"`
	MaxRelActual Float `json:"max_rel_actual"`

	FirstMismatchIndex []int `json:"first_mismatch_index"`

	MSE            Float `json:"mse"`    // Σ(a − g)² / n_finite
	RelL2          Float `json:"rel_l2"` // ‖a − g‖ / ‖g‖
	Cosine         Float `json:"cosine"`
	CosineDistance Float `json:"cosine_distance"` // 1 − cosine, without cancellation
	SNR            Float `json:"snr_db"`          // 20·log10(‖g‖ / ‖a − g‖)

	RowRelL2  Float `json:"row_rel_l2"`  // of the worst row; its denominator has a floor, see package compare
	RowIndex  *int  `json:"row_index"`   // number of that row, counted over all axes but the last
	RowMaxAbs Float `json:"row_max_abs"` // max |a − g| in that row
	MaxAbsRow *int  `json:"max_abs_row"` // number of the row of max_abs, which may be another one

	NaNGolden int `json:"nan_golden"`
	NaNActual int `json:"nan_actual"`
	InfGolden int `json:"inf_golden"`
	InfActual int `json:"inf_actual"`
}

// Tolerance is what judged a row. A criterion that was not asked for is null and left out.
type Tolerance struct {
	Atol     *Float `json:"atol,omitempty"`
	Rtol     *Float `json:"rtol,omitempty"`
	RelL2    *Float `json:"rel_l2,omitempty"`
	RowRelL2 *Float `json:"row_rel_l2,omitempty"`
	Cosine   *Float `json:"cosine,omitempty"` // smallest that passes
	MSE      *Float `json:"mse,omitempty"`
	ULP      *Float `json:"ulp,omitempty"`
	SNR      *Float `json:"snr_db,omitempty"` // smallest that passes
	KL       *Float `json:"kl,omitempty"`
	Noise    *Float `json:"noise,omitempty"`
	TopK     int    `json:"top_k,omitempty"`
	EqualNaN bool   `json:"equal_nan,omitempty"`
	Source   string `json:"source,omitempty"` // where it was written, such as "fixture.yaml:12" or "default for f32"
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

// compared reports whether the row was judged by the figures of at least one element.
func (l *Layer) compared() bool {
	switch l.Status {
	case StatusPass, StatusFail, StatusInherited:
		m := l.figures()
		return m != nil && m.N > 0
	}
	return false
}

// failing reports whether the row by itself keeps a run from passing.
func (l *Layer) failing() bool {
	switch l.Status {
	case StatusFail, StatusInherited, StatusMissing, StatusError:
		return true
	}
	return false
}
