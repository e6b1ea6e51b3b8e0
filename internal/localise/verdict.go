package localise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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
	Found                   string     // of it, what was found there in metrics
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

// Fault is an entry of the flow whose piece of the reference's program makes something else of what
// the candidate had there.
type Fault struct {
	Index  int    // of Flow.Entries
	Found  string // local error and noise, in words
	Lone   bool   // an input of the model itself
	Passed bool   // the module returns what it was given: the code around made the difference
	Held   string // why the recording is wrong and not the model; "" where the model is
	Open   bool   // it was judged by the golden: not all that goes into the place is known
	From   []int  // entries that the piece is made of
}

// Placed is the verdict of faults that replay found: the earliest is the place, all are the frontier,
// and what else differs has it from them. It is nil without faults.
func (f *Flow) Placed(faults []Fault) *Verdict {
	of := map[int]*Fault{}
	for i := range faults {
		of[faults[i].Index] = &faults[i]
	}
	var first, capture *Verdict
	var frontier []string
	for _, p := range f.Passes {
		var found *Verdict
		for i, e := range p.Events {
			fault := of[e.Index]
			if fault == nil {
				continue
			}
			v := p.placed(i, fault)
			v.Case, v.Step = p.Case, p.Step
			switch {
			case v.Kind == KindCapture:
				capture = cmp.Or(capture, v)
				continue
			case found == nil:
				found = v
			default:
				found.Others = append(found.Others, v)
			}
			for _, l := range v.Frontier {
				if !slices.Contains(frontier, l) {
					frontier = append(frontier, l)
				}
			}
		}
		if found != nil && (first == nil || first.Step == found.Step && found.at < first.at) {
			first = found
		}
	}
	switch {
	case first == nil:
		return capture
	case capture != nil:
		first.Evidence = append(first.Evidence, capture.Text)
	}
	if first.Kind != KindUnordered {
		first.Frontier = frontier
	}
	first.blame = map[Key]string{}
	for _, p := range f.Passes {
		p.inherit(first, frontier)
	}
	return first
}

// placed says where the fault of an event is: in the layer that put it out, or in the code of the
// container that gave it to a layer.
func (p *Pass) placed(i int, f *Fault) *Verdict {
	e := p.Events[i]
	v := &Verdict{Kind: KindBetween, Layer: e.Layer, Port: e.Port, Proven: true, Found: f.Found, at: i}
	switch {
	case f.Held != "":
		v.Kind, v.Text = KindCapture, f.Held
		return v
	case f.Lone:
		v.Kind, v.Proven = KindInput, !f.Open
		v.Layer, v.Port = p.consumer(i)
		v.Text = fmt.Sprintf("the two runs were not given the same input: %s of %s differs", e.Port, e.Layer)
		v.Frontier = []string{v.Layer}
		return v
	case e.Input || f.Passed:
		v.Layer, v.Before = p.Container(e.Layer), e.Layer
	case !p.holdsJoined(e.Layer):
		v.Kind = KindLocal
	}
	if v.Kind == KindBetween {
		v.After = p.last(v.Layer, i)
	}
	if outer, open := p.reaches(v.Layer, f, v.Kind == KindLocal); open && v.After == "" {
		v.open(p, i, outer, f.Open)
	}
	v.Text = v.sentence() + ": " + f.Found
	if v.Kind == KindLocal || !p.flow.Nested { // golden inputs inside hide what the code between layers does
		v.interaction(p, e)
	}
	if rivals := p.rivals(i); f.Open && len(rivals) > 0 {
		return p.unplaced(i, rivals)
	}
	v.Frontier = []string{cmp.Or(v.Before, v.Layer)}
	return v
}

// consumer returns the innermost layer that takes a model's differing input, or what the model's
// own code makes of it, before anything wrong comes out of a layer.
func (p *Pass) consumer(i int) (layer, port string) {
	cur := p.Events[i]
	for _, e := range p.Events[i+1:] {
		if !e.Input && e.differs() {
			break
		}
		same := e.Same == cur.Same && e.Len == cur.Len && (e.Same > 0 || e.Port == cur.Port)
		if e.Input && e.differs() && p.Inside(e.Layer, cur.Layer) && (same || label.IsRoot(cur.Layer)) {
			cur = e
		}
	}
	return cur.Layer, cur.Port
}

// last returns the layer inside a container that put something out last before event i; "" for none.
func (p *Pass) last(container string, i int) string {
	if j := p.Producer(i); j >= 0 && p.Events[i].Input && p.Events[j].Joined && p.Inside(p.Events[j].Layer, container) {
		return p.Events[j].Layer
	}
	for _, e := range slices.Backward(p.Events[:i]) {
		if e.Joined && !e.Input && p.Inside(e.Layer, container) {
			return e.Layer
		}
	}
	return ""
}

// reaches reports whether what a fault is made of lies outside of a layer, for layers in between
// recorded nothing: the place may be any of them. outer is the last layer whose output that is. A layer
// that recorded something it took is the place by its program.
func (p *Pass) reaches(layer string, f *Fault, leaf bool) (outer string, open bool) {
	inside, outside := false, false
	for _, e := range p.Events {
		switch {
		case !slices.Contains(f.From, e.Index):
		case e.Layer == layer || p.Inside(e.Layer, layer):
			inside = true
		default:
			outside = true
			if !e.Input {
				outer = e.Layer
			}
		}
	}
	if f.Open {
		return outer, outside || !inside
	}
	return outer, leaf && outer != "" && !inside
}

// open sets an interval that the records leave open: from the output of outer, or the beginning, up to
// event i. Golden inputs tell more of what was judged by the golden.
func (v *Verdict) open(p *Pass, i int, outer string, byGolden bool) {
	alone := p.Events[i].Alone
	v.Open = true
	if byGolden && v.Kind == KindLocal && alone != nil && !alone.Agrees {
		return // it is the layer, whatever it was given
	}
	for _, e := range p.of(v.Layer, true) {
		if v.Kind == KindLocal && !e.Joined {
			v.Gaps = append(v.Gaps, e.Port)
		}
	}
	if v.Kind == KindBetween {
		v.Gaps = p.missed(outer, i)
	}
	if byGolden && v.Kind == KindLocal && alone != nil { // right on what it should have got: it got something else
		v.Kind, v.Layer, v.Before = KindBetween, p.Container(v.Layer), v.Layer
	}
	v.Proven, v.After = false, outer
	end := cmp.Or(v.Before, v.Layer)
	switch {
	case v.Kind == KindLocal && outer == "":
		v.Place = fmt.Sprintf("in %s, or before it", end)
	case v.Kind == KindLocal:
		v.Place = fmt.Sprintf("in %s, or between %s and %s", end, outer, end)
	case outer == "":
		v.Place = "before " + end
	default:
		v.Place = fmt.Sprintf("between %s and %s", outer, end)
	}
}

// missed lists the layers that ran between the last output of a layer and event i, and of which the
// candidate recorded no output.
func (p *Pass) missed(after string, i int) (layers []string) {
	for j := i - 1; j >= 0 && p.Events[j].Layer != after; j-- {
		if e := p.Events[j]; !e.Joined && !e.Input && !slices.Contains(layers, e.Layer) {
			layers = append(layers, e.Layer)
		}
	}
	slices.Reverse(layers)
	return layers
}

// sentence is what a verdict of code says of its place.
func (v *Verdict) sentence() string {
	switch {
	case v.Place != "":
		return v.Place
	case v.Kind == KindBetween:
		return fmt.Sprintf("the code of %s between %s and %s computes something else", v.Layer, cmp.Or(v.After, "its beginning"), cmp.Or(v.Before, "its end"))
	case v.Open:
		return v.Layer + " computes something else, on the golden inputs, too"
	}
	return v.Layer + " computes something else"
}

// inherit notes for each layer that differs where that comes from: the first fault inside it, else the
// place. The model's own output is never excused.
func (p *Pass) inherit(v *Verdict, frontier []string) {
	own := map[string]bool{v.Layer: v.Before == "", v.Before: true}
	holds := map[string]string{}
	for _, l := range frontier {
		own[l] = true
		for _, around := range p.Around(l) {
			holds[around] = cmp.Or(holds[around], l)
		}
	}
	for _, e := range p.Events {
		if !e.Input && e.differs() && !label.IsRoot(e.Layer) && !own[e.Layer] {
			v.blame[Key{Case: p.Case, Step: p.Step, Layer: e.Layer}] = cmp.Or(holds[e.Layer], v.Layer)
		}
	}
}

// interaction corrects a verdict: what is wrong in the model although everything that it was given
// is right, and right when it runs on the same inputs, is not wrong by itself. An input that the
// candidate did not record leaves the standard run's verdict as it is.
func (v *Verdict) interaction(p *Pass, e *Entry) {
	inputs := p.of(v.Layer, true)
	unknown := slices.ContainsFunc(inputs, func(in *Entry) bool { return !in.known() })
	if !v.Proven || len(inputs) == 0 || unknown || !p.rightAlone(v, e) {
		return
	}
	v.Kind, v.After, v.Before, v.Gaps = KindInteraction, "", "", nil
	v.Text = fmt.Sprintf("%s gets the right inputs and is wrong in the model, but right when it runs on the golden inputs", v.Layer)
}

// apart is how many times further off a port has to be in the model than on golden inputs, to be right there: in 16 bits
// the limits of both are wide.
const apart = 2

// rightAlone reports whether an output is right on golden inputs, and clearly better than in the model.
func (e *Entry) rightAlone() bool {
	return e.Alone != nil && e.Alone.Agrees && apart*e.Alone.Error <= e.Error
}

// rightAlone reports whether the code of a place gave the right result on golden inputs, seen at the
// container's end where the place is an interval before another layer.
func (p *Pass) rightAlone(v *Verdict, e *Entry) bool {
	if v.Before == "" {
		return e.rightAlone()
	}
	alone, joined, wrong := false, false, false
	for _, o := range p.of(v.Layer, false) {
		joined, wrong = joined || o.Joined, wrong || o.differs()
		if o.Alone == nil {
			continue
		}
		if !o.Alone.Agrees || !o.Agrees && !o.rightAlone() {
			return false
		}
		alone = true
	}
	return alone && (wrong || !joined)
}

// rivals lists the layers that may have been wrong before event i, where the order of execution is
// not known: their outputs differ and none of their inputs does, or an input differs that nothing
// recorded made, and nothing tells that they ran later. There is none if i is known to be first:
// its inputs agree, or it is wrong on the golden inputs.
func (p *Pass) rivals(i int) (layers []string) {
	e := p.Events[i]
	switch j := p.Producer(i); {
	case !p.flow.Unordered[p.Case], e.Alone != nil && !e.Alone.Agrees, e.Input && j >= 0 && p.Events[j].known(),
		!e.Input && slices.ContainsFunc(p.of(e.Layer, true), func(in *Entry) bool { return in.Joined }):
		return nil
	}
	for j, o := range p.Events {
		if !o.differs() || slices.Contains(layers, o.Layer) || label.Ordered(e.Layer, o.Layer) {
			continue
		}
		if o.Input && p.Producer(j) < 0 || !o.Input && !slices.ContainsFunc(p.of(o.Layer, true), (*Entry).differs) {
			layers = append(layers, o.Layer)
		}
	}
	return layers
}

// unplaced returns the verdict where event i and its rivals differ and any of them may have been
// the first. The frontier has those before which no other is known to have run.
func (p *Pass) unplaced(i int, rivals []string) *Verdict {
	v := &Verdict{Kind: KindUnordered, at: i, Frontier: label.Unordered(append([]string{p.Events[i].Layer}, rivals...))}
	v.Text = fmt.Sprintf("the order of execution is not known, so any of %s may be the first that is wrong: write the names, one a line and in the order of "+
		"execution, into tensor_names.txt of the reference's folder", strings.Join(v.Frontier[:min(6, len(v.Frontier))], ", "))
	return v
}
