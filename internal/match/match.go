package match

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// Port is one recorded tensor of a run.
type Port struct {
	Step  string // the forward pass, "0" for the prefill
	Layer string // the label as it was recorded, with its call: "model.norm(2)"
	Port  string // "input_0", "output", "computed_1", "tap", …
	Seq   int    // execution index in the run
	DType tensor.DType
	Shape []int
	// Tensor is what Propose compares by value. Runs reads no tensors.
	Tensor *tensor.Tensor
}

// Label is "<layer>-<port>".
func (p Port) Label() string { return p.Layer + "-" + p.Port }

// Options of Runs. The zero value is right for two dumps of which nothing else is known.
type Options struct {
	Rules  []Rule
	Ignore []Ignore
	// AllowReshape pairs ports of one layer that have equally many elements in another shape.
	AllowReshape bool
	// PadMask is true per [batch][token] where there is a real token, false for padding. It applies to
	// tensors of that batch and length.
	PadMask [][]bool
	// Lengths has, by step, the number of rows of each sequence, where the rows of all sequences of a
	// step lie one after the other.
	Lengths map[string][]int
	// Generating says that the model generates text, so that its last layers may compute the last row
	// only. Without it an lm_head, an output named logits or a second step tells.
	Generating bool
	// GoldenByName and ActualByName say that the order of that side is the order of the names, not that
	// of execution.
	GoldenByName, ActualByName bool
	// Partial says that the runs hold a part of what others hold, in which rules and patterns to ignore
	// were found: a rule that finds nothing is left out and listed as unused.
	Partial bool
}

// Pair is a port of the golden run and what is compared with it.
type Pair struct {
	Golden []int // the index into the golden ports
	Actual []int // indices into the actual ports; more than one: joined by ActualView

	GoldenView, ActualView layout.View
	Shape                  []int  // of both sides after the views
	RowMask                []bool // the rows that count (all axes of Shape but the last, row-major); nil = all

	Note     string // how the two were joined, if not by equal ports and shapes
	Problem  string // why the shapes cannot fit: nothing can be compared. A failure for outputs, a note for inputs
	Computed bool   // the actual port is computed_<n>: what the candidate had computed before the input was replaced
	Mask     bool   // an attention mask: what it allows counts, not its numbers
	Shared   bool   // the actual port also belongs to other pairs: it is a fused projection or its input
}

// Unmatched is a port that only one side has.
type Unmatched struct {
	Index   int    // into that side's ports
	Reason  string // "" if none is known
	Usual   bool   // Reason is one by which engines differ that compute the same: an activation, a dropout, a pooler
	Nearest string // the label of the other side that has the nearest name, if any is near
}

// Result is what Runs found.
type Result struct {
	Pairs           []Pair              // in the golden's execution order
	Layers          map[string][]string // golden label → labels of the candidate, with calls
	UnmatchedGolden []Unmatched
	UnmatchedActual []Unmatched
	Ignored         []Ignored
	Notes           []string // how names and layouts were joined, for the report
	Gaps            []Gap
	Moved           []string // golden labels of layers that the candidate runs before or after others than the golden does
	Unused          []string // rules that were left out, and why: see Options.Partial
}

// Runs finds out which port of the actual run is which of the golden one, step by step. Errors are:
// a rule or an ignore pattern that matches nothing or is wrong, names that fit several others
// equally well, a port that is there twice. All errors of one kind are reported together.
func Runs(golden, actual []Port, opt Options) (*Result, error) {
	m, err := joinLayers(golden, actual, opt)
	if err == nil {
		err = errors.Join(m.errs...)
	}
	if err != nil {
		return nil, err
	}
	m.pairPorts()
	m.finish()
	return m.Result, nil
}

// joinLayers runs the rounds of the package comment on two runs.
func joinLayers(golden, actual []Port, opt Options) (*matcher, error) {
	padding, err := layout.NewPadding(opt.PadMask)
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	m := &matcher{opt: opt, padding: padding, noted: map[string]int{}, lastRows: map[string]bool{},
		reported: map[string]bool{}, Result: &Result{Layers: map[string][]string{}}}
	skip, err := m.applyIgnores(golden, actual)
	if err != nil {
		return nil, err
	}
	if m.golden, err = newSide("golden", golden, skip, opt.GoldenByName); err != nil {
		return nil, err
	}
	if m.actual, err = newSide("candidate", actual, skip, opt.ActualByName); err != nil {
		return nil, err
	}
	m.golden.other, m.actual.other = m.actual, m.golden
	if foldCalls(m.golden, m.actual) || foldCalls(m.actual, m.golden) {
		m.note("one side recorded all steps as calls of one: call n is compared with step n")
	}
	m.generating = opt.Generating || m.generates()
	if err := m.applyRules(); err != nil {
		return nil, err
	}
	m.joinNamed(m.golden.nodes, m.actual.nodes)
	m.roots()
	m.fused()
	return m, nil
}

var heads = label.TextHeads.Folded()

// generates guesses from names and steps whether the golden run is one of a model that generates
// text.
func (m *matcher) generates() bool {
	isHead := func(n *node) bool { return slices.Contains(heads, n.lastSegment()) }
	return len(m.golden.steps) > 1 || len(m.actual.steps) > 1 ||
		slices.ContainsFunc(m.golden.nodes, isHead) || slices.ContainsFunc(m.actual.nodes, isHead) ||
		slices.ContainsFunc(m.golden.ports, func(p *port) bool {
			return p.name == "output_logits" && len(p.shape) == 3
		})
}
