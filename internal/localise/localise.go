package localise

import (
	"cmp"
	"slices"

	"github.com/goparity/goparity/internal/trace"
)

// Record is what the comparison found of one entry of the reference's trace.
type Record struct {
	Joined  bool // the candidate has it
	Agrees  bool // within the noise floor, or means the same (masks)
	Integer bool // ids and positions
	// Beyond says that it is known to be no noise, however small: it is more than what the encoding
	// costs the reference, or of a coarser type than the run was asked for.
	Beyond bool
	Len    int // elements in the reference

	Error   float64 // relative L2 of the worst row; +Inf if a NaN, an infinity or an integer has no match
	Whole   float64 // relative L2 of the tensor
	Epsilon float64 // rounding of the coarser type of the two, 0 for integers: less than that is no error
	Grid    float64 // rounding of a narrower type that holds all the candidate's values and not the reference's; 0 for none
	Along   float64 // cosine of error and golden: near ±1 the values are scaled, near 0 the error is like noise

	Twin string // the layer of another output with the same bytes in the candidate, though the two differ in the reference
	// Held says what an output holds of which it is known that the recording is wrong, and not the model;
	// "" for none. Shown reports whether what it holds was recorded, too.
	Held  string
	Shown bool

	Alone *Alone // of the run on golden inputs; nil without one
}

// Alone is what a port was in the run on golden inputs: an output, or for an input of a nested run
// what had been computed for it before it was replaced.
type Alone struct {
	Agrees bool
	Error  float64
}

// The kinds of a verdict that records tell.
const (
	KindInput       = "input"
	KindWeights     = "weights" // from the audit of the load, never from records
	KindCapture     = "capture"
	KindInteraction = "interaction"
	KindBetween     = "between"
	KindLocal       = "local"
	KindDrift       = "drift"
	KindPath        = "path"      // it is right in one pass, and wrong along the execution path of the run
	KindUnordered   = "unordered" // several layers differ, and nothing tells which of them ran first
)

// Verdict says where the candidate leaves the reference.
type Verdict struct {
	Kind                    string
	Case, Step, Layer, Port string   // of drift, unordered and other prompts only Case and Step: no layer is accused
	After, Before           string   // the interval of KindBetween; empty: from the container's beginning, to its end
	Open                    bool     // not all that went into the place was recorded on both sides, so no cause can be proven
	Place                   string   // of an open one: "in b, or between a and b"; "" if the layer is known to be it
	Frontier                []string // layers that make an error of their own, innermost ones
	Proven                  bool     // all of the layer's inputs agree, or its run on golden inputs is wrong too
	Gaps                    []string // inputs and layers that the candidate did not record, and that would have told more
	Text                    string   // one sentence
	Evidence                []string // what else speaks for it, one sentence each
	Growth                  []Growth // of drift: the error along the depth

	at    int // index of the event, to order the verdicts of several cases
	pass  *pass
	all   []*Verdict // of drift: those of all passes
	blame map[passLayer]string
}

// Growth is the error of one of several blocks that are built alike.
type Growth struct {
	Layer string
	Error float64 // in the standard run
	Alone float64 // on golden inputs; NaN without such a run
}

type passLayer struct{ caseName, step, layer string }

// Blame returns the layer from which another layer inherited its error; "" if that layer made one
// of its own, or nothing shows that it did not.
func (v *Verdict) Blame(caseName, step, layer string) string {
	if v == nil {
		return ""
	}
	return v.blame[passLayer{caseName, step, layer}]
}

// Run is what is known of a comparison.
type Run struct {
	Trace   *trace.Trace
	Records []Record // by trace.Event.Index
	Nested  bool     // golden inputs were given inside layers too: a container's output shows only its last code

	// Unordered are the cases of which the trace is not in the order of execution, so that only the
	// names tell which of two layers ran first (label.Ordered).
	Unordered map[string]bool

	// Excess returns the factor by which the error of an output exceeds what the error of an input
	// of its layer and rounding make of it; NaN if it is not known. It may be slow, and is called
	// only where the other figures accuse a layer. nil if it is never known.
	Excess func(in, out int) float64

	// FewRows reports whether only a few rows of a port are off by more than half of what agrees: then
	// it may be that large terms cancel there. It may be slow, and is called only where the other
	// figures accuse a layer. nil if it is never known.
	FewRows func(index int) bool

	// Rounding reports whether rounding alone made everything that fails in a drift: then there is
	// no divergence. nil if that is not known.
	Rounding func(*Verdict) bool

	Given Given
}

// First finds the first divergence over all cases, the earliest step first. It is nil if nothing
// that disagrees is an error.
func First(r Run) *Verdict {
	verdict := r.first()
	if verdict == nil || verdict.Kind == KindDrift && r.Rounding != nil && r.Rounding(verdict) {
		return nil
	}
	r.given(verdict)
	return verdict
}

func (r *Run) first() *Verdict {
	var verdict *Verdict
	blame := map[passLayer]string{}
	var all []*Verdict
	for passes := r.Trace.Passes; len(passes) > 0; {
		var found []*Verdict
		step := passes[0].Step
		for ; len(passes) > 0 && passes[0].Step == step; passes = passes[1:] {
			p := newPass(r, passes[0])
			if v := p.first(); v != nil {
				v.Case, v.Step, v.pass = p.Case, step, p
				found = append(found, v)
				p.inherited(v, blame)
			}
		}
		if len(found) == 0 {
			continue
		}
		// A fault may hide in one case and show in another: the earliest place of all cases counts.
		v := slices.MinFunc(found, func(a, b *Verdict) int {
			return cmp.Or(a.rank()-b.rank(), a.at-b.at)
		})
		if verdict == nil || v.rank() < verdict.rank() {
			verdict = v
		}
		all = append(all, found...)
	}
	if verdict != nil {
		verdict.blame, verdict.all = blame, all
	}
	return verdict
}

// rank puts an error of the model before one of the recording, and both before what no layer made.
func (v *Verdict) rank() int {
	switch v.Kind {
	case KindDrift:
		return 2
	case KindCapture:
		return 1
	}
	return 0
}
