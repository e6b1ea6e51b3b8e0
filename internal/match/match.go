package match

import (
	"github.com/goparity/goparity/tensor"
)

// Port is one recorded tensor of a run, without its bytes.
type Port struct {
	Step  string // the forward pass, "0" for the prefill
	Layer string // the label as it was recorded, with its call count: "model.norm(2)"
	Port  string // "input_0", "output", "computed_1", "tap", …
	Seq   int    // execution index in the run
	DType tensor.DType
	Shape []int
}

// Label is "<layer>-<port>".
func (p Port) Label() string { return p.Layer + "-" + p.Port }

// Ignore takes what a pattern matches out of the comparison, on both sides. The pattern is one of package glob, for a layer
// ("**.dropout") or for one port of it ("**.self_attn-output_1").
type Ignore struct {
	Pattern string
	Reason  string // required
}

// Options of Runs. The zero value is right for two dumps of which nothing else is known.
type Options struct {
	Rules  []Rule
	Ignore []Ignore
	// AllowReshape pairs ports of one layer that have equally many elements in another shape.
	AllowReshape bool
	// PadMask is true per [batch][token] where there is a real token, false for padding. It applies to tensors of that batch and length.
	PadMask [][]bool
	// Generating says that the model generates text, so that its last layers may compute the last row only. Without it an lm_head,
	// an output named logits or a second step tells.
	Generating bool
	// GoldenByName and ActualByName say that the order of that side is the order of the names, not that of execution.
	GoldenByName, ActualByName bool
}

// Pair is a port of the golden run and what is compared with it.
type Pair struct {
	Golden []int // indices into the golden ports; more than one: joined by GoldenView
	Actual []int // indices into the actual ports; more than one: joined by ActualView

	GoldenView, ActualView View
	Shape                  []int  // of both sides after the views
	RowMask                []bool // the rows that count (all axes of Shape but the last, row-major); nil = all

	Note     string // how the two were joined, if not by equal ports and shapes
	Problem  string // why the shapes cannot fit: nothing can be compared. A failure for outputs, a note for inputs
	Computed bool   // the actual port is computed_<n>: what the candidate had computed for this input before it was replaced
	Mask     bool   // an attention mask: what it allows counts, not its numbers
	Shared   bool   // the actual port also belongs to other pairs: it is a fused projection or its input
}

// Unmatched is a port that only one side has.
type Unmatched struct {
	Index   int    // into that side's ports
	Reason  string // "" if none is known
	Nearest string // the label of the other side that has the nearest name, if any is near
}

// Ignored is a port that an Ignore rule took out.
type Ignored struct {
	Golden bool // of the golden side
	Index  int
	Reason string
}

// Gap is a stretch of layers that were not joined, between two that were.
type Gap struct {
	After, Before  string   // golden labels of the joined neighbours; "" at the beginning and the end
	Golden, Actual []string // the labels in between that have no known reason
	Times          int      // how many blocks have the same gap
	YAML           string   // lines to paste into fixture.yaml
}

// String says "unmatched A … B between S1 and S2".
func (g Gap) String() string { return g.text() }

// Result is what Runs found.
type Result struct {
	Pairs           []Pair              // in the golden's execution order
	Layers          map[string][]string // golden label → labels of the candidate, with call counts
	UnmatchedGolden []Unmatched
	UnmatchedActual []Unmatched
	Ignored         []Ignored
	Notes           []string // how names and layouts were joined, for the report
	Gaps            []Gap
}
