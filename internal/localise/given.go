package localise

import (
	"fmt"
	"iter"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Given is what the runs say of themselves, by case.
type Given struct {
	OtherPrompt map[string]string   // how the inputs of the two differ
	Load        map[string]Load     // what the candidate says of the weights that it loaded
	Unseen      map[string][]Unseen // what no hook of the candidate could record
	// Path says why an error is one of the execution path of a run, and not of the model; "" if nothing
	// shows that. nil where all runs are of one pass.
	Path func(*Verdict) string
	// Stateless reports whether a layer makes each row of its output of one row of its input, so that no
	// path can be wrong in it.
	Stateless func(layer string) bool
}

// Load is a load that was not complete: the names of the weights that the candidate lacked, and of
// those that it did not use.
type Load struct{ Missing, Unused []string }

// Unseen is what could not be recorded of a layer of the reference, one sentence.
type Unseen struct{ Layer, Text string }

// given adds to a verdict what the runs say of themselves. Where their inputs differ, or the
// candidate did not load what the checkpoint holds, that comes before what follows from it.
func (r *Run) given(v *Verdict) {
	if text := r.Given.OtherPrompt[v.Case]; text != "" && v.Kind != KindInput {
		v.otherPrompt(text)
	}
	if load, ok := r.Given.Load[v.Case]; ok && v.Kind != KindInput {
		v.Kind, v.Proven = KindWeights, true
		v.Text = "the weights that were loaded are not those of the checkpoint: " + load.text() + "; " + v.Text
		if e := r.starved(v, load.Missing); e != nil {
			v.Layer, v.Port, v.After, v.Before, v.Place, v.Gaps = e.Layer, e.Port, "", "", "", nil
		}
	}
	r.path(v)
	for _, u := range r.Given.Unseen[v.Case] {
		if u.Layer == v.Layer {
			v.Evidence = append(v.Evidence, u.Text)
		}
	}
}

// path makes it a verdict about the execution path, if that is what is wrong. A layer that cannot be
// wrong by a path got something else, which was not recorded.
func (r *Run) path(v *Verdict) {
	if accuses := v.Kind == KindLocal || v.Kind == KindBetween || v.Kind == KindInput && v.Layer != ""; !accuses || r.Given.Path == nil {
		return
	}
	why := r.Given.Path(v)
	if why == "" {
		return
	}
	if v.Kind == KindLocal && v.Open && r.Given.Stateless(v.Layer) {
		layer := v.Layer
		v.Layer, v.Before, v.Place = v.pass.Container(layer), layer, ""
		v.Text = fmt.Sprintf("%s makes each row of one row, and its first output is wrong, so what it is given is: %s", layer, v.Text)
	}
	v.Kind, v.Text = KindPath, why+": "+v.Text
}

// otherPrompt makes it a verdict about the input, which accuses no layer.
func (v *Verdict) otherPrompt(text string) {
	v.Kind, v.Layer, v.Port, v.After, v.Before = KindInput, "", "", "", ""
	v.Proven, v.Gaps, v.Frontier, v.Place, v.Open = true, nil, nil, "", false
	v.Text = "the two runs were not given the same input: " + text
}

// OtherPrompt is the verdict about a case in which no layer differs, but the prompt.
func OtherPrompt(caseName, step, text string) *Verdict {
	v := &Verdict{Case: caseName, Step: step}
	v.otherPrompt(text)
	return v
}

func (l Load) text() string {
	var parts []string
	if len(l.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%d missing (%s)", len(l.Missing), label.Few(l.Missing)))
	}
	if len(l.Unused) > 0 {
		parts = append(parts, fmt.Sprintf("%d of the checkpoint not used (%s)", len(l.Unused), label.Few(l.Unused)))
	}
	return strings.Join(parts, ", ")
}

// wrong lists the outputs that differ in the forward pass of a verdict, in the order in which they
// existed.
func (r *Run) wrong(v *Verdict) (out []event) {
	p := r.Trace.Pass(v.Case, v.Step)
	for i := range p.Events {
		if e := (event{&p.Events[i], r.Records[p.Events[i].Index]}); !e.Input && e.differs() {
			out = append(out, e)
		}
	}
	return out
}

// starved returns the first wrong output of a layer that lacks a weight: the weight's name without
// its last part is the end of the layer's label, or the other way round.
func (r *Run) starved(v *Verdict, missing []string) *event {
	modules, ends := map[string]bool{}, map[string]bool{}
	for _, name := range missing {
		if module := label.Parent(name); module != "" {
			modules[module] = true
			for end := range tails(module) {
				ends[end] = true
			}
		}
	}
	for _, e := range r.wrong(v) {
		layer := label.Name(e.Layer)
		lacks := ends[layer]
		for end := range tails(layer) {
			lacks = lacks || modules[end]
		}
		if lacks {
			return &e
		}
	}
	return nil
}

// tails ranges over a name and what is left of it after each dot.
func tails(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more && yield(name); {
			_, name, more = strings.Cut(name, ".")
		}
	}
}
