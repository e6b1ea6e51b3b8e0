// Package match finds out which layer and port of one run is which of the other, and how the two lie
// onto each other. [Runs] pairs, by labels, ports, dtypes, shapes and order: it reads no tensor bytes.
// [Propose] searches by the values, too, and in the order of execution, and writes what Runs would not
// join as rules. Both pair the layers of which each is the other's best choice by a margin.
//
// # Layers
//
// Layers are joined by their labels in rounds, the surest first, as far as they have no partner yet:
//
//   - rules: what the fixture says under names.
//   - equal labels: model.lm_head = model.lm_head.
//   - prefixes: case, underscores and the word layers before a number do not count, and wrapper words
//     are dropped, as few as needed: model.model.layers.layers.0.layer_norm = model.layers.0.LayerNorm;
//     then an unknown word in front of one side's layers, which most layers agree on and no shape
//     contradicts: model.mymodel.encoder.layer.0 = model.encoder.layer.0.
//   - roots: labels of wrapper words only (model, model.model, model.language_model). Equal labels go
//     first, then the outermost, and those whose outputs fit before those whose do not.
//   - fused: q_proj, k_proj and v_proj are a group, which has the place of a qkv_proj in the rounds
//     above; so are gate_proj and up_proj.
//
// In a round two layers are joined if each is the only choice of the other. Where there are several,
// those count whose outputs fit. If that does not leave one, the names are ambiguous, which is an
// error: no pairing is guessed.
//
// # Ports
//
// The ports of two joined layers are paired in each forward pass and call that both sides made:
//
//   - outputs by their name, the first one whatever it is called.
//   - inputs by their name, then by dtype and shape in the order of their positions, then masks.
//   - what a candidate had computed for an input before it was replaced, as that input.
//
// [Padding.Fit] says how the shapes of a pair lie onto each other. The last row alone is accepted
// at the end of a generating model: after the last joined layer that has all rows.
//
// What has no partner is listed with a reason where one is known, and the layers without partner and
// reason as gaps.
//
// # Proposals
//
// By value: two outputs that hold the same numbers, up to the noise of their type, are the same
// tensor, whatever they are called and in whichever order they were recorded. Values are compared
// by samples ([maxSample] elements), found by random projections and confirmed element by element.
// Where several layers hold one value (a projection, the dropout after it and the module around
// both), their inputs, what lies inside them and their names tell which is which.
//
// By pattern: what was found is generalised over numbers: h.0.attn = L0_attention and h.1.attn =
// L1_attention are one pattern, which each pair of blocks votes for. A pattern that holds in one block
// is taken for all, also after an error of the candidate, where no value agrees. Blocks may be
// counted from another number.
//
// By order: what is left is aligned in the order of execution, between what is known, by shape: for
// an error in the first block. A pair is proposed only if no other alignment is nearly as good and if
// neither side's value is elsewhere in the other run. Layers that were given the same, as q, k and v,
// are not told apart by the order alone. Without an order, names and shapes must do.
//
// Nothing is proposed for runs of two models: some values must agree, or be alike, that hold
// something of the model itself and no table of positions.
package match

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
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
	// GoldenByName and ActualByName say that the order of that side is the order of the names, not
	// that of execution.
	GoldenByName, ActualByName bool
	// Partial says that the runs hold a part of what others hold, in which rules and patterns to
	// ignore were found: a rule that finds nothing is left out and listed as unused.
	Partial bool
}

// Pair is a port of the golden run and what is compared with it.
type Pair struct {
	Golden []int // the index into the golden ports
	Actual []int // indices into the actual ports; more than one: joined by ActualView

	GoldenView, ActualView View
	Shape                  []int  // of both sides after the views
	RowMask                []bool // the rows that count (all axes of Shape but the last, row-major); nil = all

	Note     string // how the two were joined, if not by equal ports and shapes
	Problem  string // why the shapes cannot fit: nothing can be compared. A failure for outputs, a note for inputs
	Computed bool   // the actual port is computed_<n>: what the candidate had computed before the input was replaced
	Mask     bool   // an attention mask: what it allows counts, not its numbers
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
	Pairs           []Pair // in the golden's execution order
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
	padding, err := newPadMask(opt.PadMask)
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	m := &matcher{opt: opt, padding: padding, noted: map[string]int{}, lastRows: map[string]bool{},
		reported: map[string]bool{}, Result: &Result{}}
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

// finish sorts the pairs and says what is left over and why.
func (m *matcher) finish() {
	golden, actual := m.golden.all, m.actual.all
	slices.SortStableFunc(m.Pairs, func(a, b Pair) int {
		return cmp.Or(golden[a.Golden[0]].rank-golden[b.Golden[0]].rank, actual[a.Actual[0]].rank-actual[b.Actual[0]].rank)
	})
	if len(m.lastRows) > 0 {
		m.note("last row only: " + strings.Join(slices.Sorted(maps.Keys(m.lastRows)), ", "))
	}
	m.UnmatchedGolden, m.UnmatchedActual = m.unmatched(m.golden), m.unmatched(m.actual)
	m.findGaps()
	for i, line := range m.Notes {
		if n := m.noted[line]; n > 1 {
			m.Notes[i] = fmt.Sprintf("%s (%d times)", line, n)
		}
	}
}

// unmatched lists the ports of a side without partner. The nearest name is looked up for one layer
// of all blocks.
func (m *matcher) unmatched(s *side) []Unmatched {
	free := labels(keep(s.other.nodes, func(n *node) bool { return n.join == nil })) // a joined one is no slip of another
	var out []Unmatched
	near, tried := map[*node]string{}, map[string]bool{}
	for _, port := range s.ports {
		if port.used || port.call == nil {
			continue
		}
		n := port.call.node
		u := Unmatched{Index: port.index}
		u.Reason, u.Usual = m.reason(port)
		if n.join == nil && u.Reason == "" {
			if k := label.Stars(n.label); len(tried) < maxHints && !tried[k] {
				tried[k] = true
				near[n], _ = label.Nearest(n.label, free)
			}
			u.Nearest = near[n]
		}
		out = append(out, u)
	}
	return out
}

// noteJoins says once for all blocks what was not done by equal names.
func (m *matcher) noteJoins() {
	for _, j := range m.joins {
		g, a := j.golden[0], j.actual[0]
		switch {
		case j.rule != nil:
			m.note("by a rule: " + j.rule.String())
		case j.fused():
			m.note(fmt.Sprintf("%s = candidate %s", starred(j.golden), starred(j.actual)))
		case j.root && !slices.Equal(g.form, a.form):
			m.note(fmt.Sprintf("%s = candidate %s: both are the whole model", g.label, a.label))
		}
	}
}

func starred(nodes []*node) string { return strings.Join(collect(labels(nodes), label.Stars), ", ") }

// note says what was done, with all blocks in one line.
func (m *matcher) note(line string) {
	if m.noted[line]++; m.noted[line] == 1 {
		m.Notes = append(m.Notes, line)
	}
}

// Gap is a stretch of layers that were not joined, between two that were.
type Gap struct {
	After, Before  string   // golden labels of the joined neighbours; "" at the beginning and the end
	Golden, Actual []string // the labels in between that have no known reason
	Times          int      // how many blocks have the same gap
}

// findGaps lists the layers without partner and without known reason, between the joined layers
// around them, and the joined layers that are executed in another order; of a fused one the first
// part counts. Gaps that differ in block numbers only are reported once.
func (m *matcher) findGaps() {
	partner := func(n *node) *node {
		if n.join == nil || n != n.join.golden[0] {
			return nil
		}
		return n.join.actual[0]
	}
	lone := func(nodes []*node) []string {
		return labels(keep(nodes, func(n *node) bool { return n.join == nil && n.reason() == "" }))
	}
	alike := map[string]int{} // what a gap looks like in any block → its index
	for _, s := range stretches(m.golden.inOrder(), m.actual.inOrder(), partner) {
		m.Moved = append(m.Moved, labels(keep(s.golden, func(n *node) bool { return partner(n) != nil }))...)
		g := Gap{After: s.after, Before: s.before, Golden: lone(s.golden), Actual: lone(s.actual), Times: 1}
		if len(g.Golden)+len(g.Actual) == 0 {
			continue
		}
		lines := slices.Concat([]string{g.After, g.Before}, g.Golden, []string{""}, g.Actual)
		look := strings.Join(collect(lines, label.Stars), "\n")
		if i, ok := alike[look]; ok {
			m.Gaps[i].Times++
			continue
		}
		alike[look] = len(m.Gaps)
		m.Gaps = append(m.Gaps, g)
	}
}

// String says "unmatched A … B between S1 and S2".
func (g Gap) String() string {
	list := func(who string, labels []string) string {
		switch n := len(labels); {
		case n == 0:
			return ""
		case n <= 2:
			return who + " " + strings.Join(labels, ", ")
		default:
			return fmt.Sprintf("%s %s … %s (%d layers)", who, labels[0], labels[n-1], n)
		}
	}
	text := "unmatched " + join(list("golden", g.Golden), list("candidate", g.Actual))
	switch {
	case g.After != "" && g.Before != "":
		text += " between " + g.After + " and " + g.Before
	case g.After != "":
		text += " after " + g.After
	case g.Before != "":
		text += " before " + g.Before
	}
	if g.Times > 1 {
		text += fmt.Sprintf(", and in %d more blocks", g.Times-1)
	}
	return text
}

// Ignore takes what a pattern matches out of the comparison, on both sides. The pattern is one of
// package label, for a layer ("**.dropout") or for one port of it ("**.self_attn-output_1").
type Ignore struct {
	Pattern string
	Reason  string // required
}

// Ignored is a port that an Ignore took out.
type Ignored struct {
	Golden bool // of the golden side
	Index  int
	Reason string
}

// applyIgnores lists the ports that are ignored, and returns them as a set without reasons, too. Of
// several reasons the first counts.
func (m *matcher) applyIgnores(golden, actual []Port) (all map[Ignored]bool, err error) {
	var errs []error
	all = map[Ignored]bool{}
	for _, ig := range m.opt.Ignore {
		if strings.TrimSpace(ig.Reason) == "" {
			errs = append(errs, fmt.Errorf("match: ignore %q has no reason: say why it is not compared", ig.Pattern))
			continue
		}
		p, err := label.CompilePattern(ig.Pattern)
		if err != nil {
			errs = append(errs, fmt.Errorf("match: ignore %q: %w", ig.Pattern, err))
			continue
		}
		hit := false
		for side, ports := range [][]Port{golden, actual} {
			for i, port := range ports {
				if !p.Match(port.Layer) && !p.Match(port.Label()) {
					continue
				}
				hit = true
				at := Ignored{Golden: side == 0, Index: i}
				if !all[at] {
					all[at] = true
					m.Ignored = append(m.Ignored, Ignored{at.Golden, i, ig.Reason})
				}
			}
		}
		if !hit && !m.opt.Partial {
			layers := collect(slices.Concat(golden, actual), func(p Port) string { return p.Layer })
			errs = append(errs, fmt.Errorf("match: ignore %q matches no layer or port of either run%s",
				ig.Pattern, didYouMean(ig.Pattern, layers)))
		}
	}
	return all, errors.Join(errs...)
}

// didYouMean ends a sentence about a name that is not there.
func didYouMean(name string, candidates []string) string {
	if near, ok := label.Nearest(name, candidates); ok {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
