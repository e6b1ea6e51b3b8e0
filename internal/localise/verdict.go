package localise

import (
	"math"

	"github.com/goparity/goparity/internal/label"
)

// The kinds of a verdict.
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
	Found                   string     // of it, what was found there in figures
	Evidence                []string   // what else speaks for it, one sentence each
	Growth                  []Growth   // of drift: the error along the depth
	Others                  []*Verdict // what is wrong by itself after it, in the same forward pass
	OnePass                 *Verdict   // of KindPath, where that is not sure: the same, were it no matter of the path

	at    int            // index of the event, to order the verdicts of several cases
	blame map[Key]string // by layer, without a port
}

// Growth is the error of one of several blocks that are built alike.
type Growth struct {
	Layer string
	Error float64 // in the standard run
	Alone float64 // on golden inputs; NaN without such a run
}

// Blame returns the layer from which another layer inherited its error; "" if that layer made one
// of its own, or nothing shows that it did not.
func (v *Verdict) Blame(caseName, step, layer string) string {
	if v == nil {
		return ""
	}
	return v.blame[Key{Case: caseName, Step: step, Layer: layer}]
}

// OtherPrompt makes it a verdict about the input, which accuses no layer.
func (v *Verdict) OtherPrompt(text string) *Verdict {
	v.Kind, v.Layer, v.Port, v.After, v.Before = KindInput, "", "", "", ""
	v.Proven, v.Gaps, v.Frontier, v.Place, v.Open = true, nil, nil, "", false
	v.Text = "the two runs were not given the same input: " + text
	return v
}

// Drift is the verdict about a case in which errors add up, and none of what was judged by itself made
// them: no layer is accused. Its growth is that of the blocks.
func (f *Flow) Drift(caseName, step, text string) *Verdict {
	v := &Verdict{Kind: KindDrift, Case: caseName, Step: step, Text: text, Frontier: []string{}}
	for _, e := range f.Pass(caseName, step).Events {
		if e.Input || !e.Joined || !label.IsNumber(label.Last(label.Name(e.Layer))) {
			continue
		}
		alone := math.NaN()
		if e.Alone != nil {
			alone = e.Alone.Error
		}
		v.Growth = append(v.Growth, Growth{e.Layer, e.Error, alone})
	}
	return v
}
