package localise

import (
	"github.com/goparity/goparity/internal/trace"
)

// Record is what the comparison found of one entry of the reference's trace.
type Record struct {
	Joined bool    // the candidate has it
	Agrees bool    // within the noise floor, or means the same (masks)
	Len    int     // elements in the reference
	Error  float64 // relative L2 of the worst row; +Inf if a NaN, an infinity or an integer has no match

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
	Case, Step, Layer, Port string     // of drift, unordered and other prompts only Case and Step: no layer is accused
	After, Before           string     // the interval of KindBetween; empty: from the container's beginning, to its end
	Open                    bool       // not all that went into the place was recorded on both sides, so no cause can be proven
	Place                   string     // of an open one: "in b, or between a and b"; "" if the layer is known to be it
	Frontier                []string   // layers that make an error of their own, innermost ones
	Proven                  bool       // all of the layer's inputs agree, or its run on golden inputs is wrong too
	Gaps                    []string   // inputs and layers that the candidate did not record, and that would have told more
	Text                    string     // one sentence
	Evidence                []string   // what else speaks for it, one sentence each
	Growth                  []Growth   // of drift: the error along the depth
	Others                  []*Verdict // what is wrong by itself after it, in the same forward pass

	at    int // index of the event, to order the verdicts of several cases
	pass  *pass
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

	Given Given
}
