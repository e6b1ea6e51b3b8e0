package weights

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/sanitize"
)

// The statuses of a weight.
const (
	Equal     = "equal"
	Step      = "step"
	Quantised = "quantised"
	Differs   = "differs"
	Missing   = "missing"
	Unused    = "unused"
	Ignored   = "ignored" // a buffer that engines calculate
	Blank     = "blank"   // equal, and it says nothing: no elements, or nothing but zeros or NaN
)

// What is proven of a weight that differs, by numbers of both sides.
const (
	causeZero  = "weights/zero"  // the candidate's is zeros
	causeScale = "weights/scale" // it is the reference's, times a number
	causeOther = "weights/other" // it is another weight of the reference
	causeStep  = "weights/step"  // it has a step that the others of its role have not
	causeLoRA  = "weights/lora"  // one side has an adapter that the other has not
)

// IDs lists the causes that are proven by weights.
func IDs() []string { return []string{causeZero, causeScale, causeOther, causeStep, causeLoRA} }

// Result is what is known of one weight.
type Result struct {
	Status    string   `json:"status"`
	Steps     []string `json:"steps,omitempty"`
	Reference string   `json:"reference,omitempty"`
	Candidate string   `json:"candidate,omitempty"`
	Detail    string   `json:"detail,omitempty"` // what differs and where
	Cause     string   `json:"cause,omitempty"`  // "weights/zero": what is proven of one that differs
	Metrics   *metrics `json:"metrics,omitempty"`
}

// Report is the comparison of two sides.
type Report struct {
	Schema    int                     `json:"schema"` // 1
	Reference string                  `json:"reference"`
	Candidate string                  `json:"candidate"`
	Pass      bool                    `json:"pass"`
	Config    []checkpoint.Difference `json:"config"` // what the sides' configs read otherwise; null if one is not known
	Weights   []Result                `json:"weights"`
	Notes     []string                `json:"notes,omitempty"`
}

// Judged reports whether the comparison of a weight says anything.
func (w *Result) Judged() bool { return w.Status != Ignored && w.Status != Blank }

// Scaled reports whether a weight is the reference's times a number, which no closed list has.
func (w *Result) Scaled() bool { return w.Status == Differs && w.Cause == causeScale }

// Fold notes that what is made of a scaled weight undoes its number, as Falcon-H1's multipliers are folded in.
func (w *Result) Fold() {
	w.Status, w.Steps, w.Detail, w.Cause = Step, []string{w.Detail + ", and what is made of it undoes that"}, "", ""
}

// Good reports whether a weight is the reference's, or need not be.
func (w *Result) Good() bool {
	return slices.Contains([]string{Equal, Step, Quantised, Ignored, Blank}, w.Status)
}

// String is "NAME: DETAIL", with both names where they differ.
func (w *Result) String() string { return w.name() + ": " + cmp.Or(w.Detail, w.Status) }

func (w *Result) name() string {
	if w.Reference != "" && w.Candidate != "" && w.Candidate != w.Reference {
		return w.Reference + " = " + w.Candidate
	}
	return cmp.Or(w.Reference, w.Candidate)
}

// Wrong reports whether a weight is not the reference's. Without one, and without a pass, too
// little could be compared.
func (r *Report) Wrong() bool {
	return slices.ContainsFunc(r.Weights, func(w Result) bool { return !w.Good() })
}

// Text writes what a person wants to see: the verdict, each fault, and how many weights have which
// steps.
func (r *Report) Text(w io.Writer) error {
	counts, judged, right := map[string]int{}, 0, 0
	var kinds []string
	var faults strings.Builder
	tw := tabwriter.NewWriter(&faults, 0, 0, 2, ' ', 0)
	for _, x := range r.Weights {
		if x.Status != Ignored {
			judged++
		}
		if !x.Good() || x.Status == Blank {
			fmt.Fprintf(tw, "  %s\t%s\t%s\n", x.Status, sanitize.Line(x.name()), sanitize.Line(x.Detail))
			continue
		}
		if x.Status != Ignored {
			right++
		}
		kind := x.Status
		if len(x.Steps) > 0 {
			kind += ": " + strings.Join(x.Steps, ", ")
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	tw.Flush() // into memory
	verdict := "PASS"
	switch {
	case r.Wrong():
		verdict = "FAIL"
	case !r.Pass:
		verdict = "INCOMPLETE"
	}
	_, err := fmt.Fprintf(w, "%s: %d of %d weights are the reference's\n%s", verdict, right, judged, &faults)
	for _, d := range r.Config {
		fmt.Fprintf(w, "  config   %s\n", sanitize.Line(d.String()))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  note     %s\n", sanitize.Line(n))
	}
	for _, k := range kinds {
		fmt.Fprintf(w, "  %d %s\n", counts[k], k)
	}
	return err
}
