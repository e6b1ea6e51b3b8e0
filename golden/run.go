package golden

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Run is what the reference computed for one case. [Import] makes goldens from it. [OpenDump] reads
// it from files; a program can also fill one itself.
type Run struct {
	From     string            // folder or file, for errors
	Engine   string            // "torch", …
	Versions map[string]string // of the engine and its parts
	Device   string
	Encoding string // dtype in which it ran, "float32"; "" if unknown
	// Attention is the kernel of the attention: "eager", "sdpa"; "" if unknown.
	Attention string
	Nonce     string          // tells this recording from all others; "" if unknown
	TokenIDs  json.RawMessage // of each step and sequence, as in the dump
	PadMask   [][]int         // [batch][token] of the first step, 0 for padding; nil without padding
	Text      string          // what the reference generated for the case
	Texts     json.RawMessage // what its tokenizer made of the prompts, as text in run.json; nil if unknown
	// Path, Passes and PadMasks are those of a run along an execution path; see [Path].
	Path     string
	Passes   json.RawMessage
	PadMasks map[string][][]int
	// Activations says which layers rounded their inputs and how, as in run.json; nil: none did.
	Activations json.RawMessage
	Injected    bool // its layers got inputs of another run, so it cannot be golden
	// Program is the file of the program that was recorded with it (package program), whose constants
	// lie beside it; "" for none.
	Program string
	Ports   []Port // in execution order

	changed func() error // of a dump: whether its files are as they were when it was opened
}

// Port is one recorded tensor of a run: an input, an output or a tap of a layer.
type Port struct {
	Step  string // "0" is the prefill, "1" the first decode step
	Layer string // "model.layers.0.mlp"
	Port  string // "output", "input_0", …

	Tensor  *tensor.Tensor
	Partial bool // only some values are known, as in an abbreviated log: it cannot be golden
}

// Label returns "<layer>-<port>".
func (p Port) Label() string { return label.Join(p.Layer, p.Port) }

// Steps returns the steps in the order of their first tensor.
func (r *Run) Steps() []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range r.Ports {
		if !seen[p.Step] {
			seen[p.Step] = true
			out = append(out, p.Step)
		}
	}
	return out
}

// fromDump returns a run with the tensors of r, which must stay open.
func fromDump(r *dump.Run) (*Run, error) {
	if why := r.Info.Unfinished; why != "" {
		return nil, fmt.Errorf("golden: %s: the run did not come to its end (%s): what it has makes no goldens: run the reference again", r.Path, why)
	}
	out := &Run{From: r.Path, Engine: r.Info.Engine, Versions: r.Info.Versions, Device: r.Info.Device,
		Encoding: r.Info.Encoding.String(), Attention: r.Info.Attention, Nonce: r.Info.Nonce, TokenIDs: json.RawMessage(r.Info.TokenIDs),
		PadMask: r.Info.PadMask, Text: r.Info.ReferenceText, Injected: r.Info.Mode == dump.Injected, Program: r.Program, changed: r.Changed}
	if r.Info.AlongPath() {
		passes, err := json.Marshal(r.Info.Passes)
		if err != nil {
			return nil, fmt.Errorf("golden: %s: %w", r.Path, err)
		}
		out.Path, out.Passes, out.PadMasks = r.Info.Path, passes, r.Info.PadMasks
	}
	if r.Info.Activations != nil {
		rounded, err := json.Marshal(r.Info.Activations)
		if err != nil {
			return nil, fmt.Errorf("golden: %s: %w", r.Path, err)
		}
		out.Activations = rounded
	}
	if len(r.Info.Text) > 0 {
		texts, err := json.Marshal(r.Info.Text)
		if err != nil {
			return nil, fmt.Errorf("golden: %s: %w", r.Path, err)
		}
		out.Texts = texts
	}
	for _, e := range r.Entries {
		out.Ports = append(out.Ports, Port{Step: e.Step, Layer: e.Layer, Port: e.Port, Tensor: e.Tensor,
			Partial: e.Printed != nil})
	}
	return out, nil
}

// Dump is an open dump folder: the runs of its cases, whose tensors are views of its files and must
// not be used after Close.
type Dump struct {
	Runs map[string]*Run // by case; "" if the dump does not name its case
	open []*dump.Run
}

// OpenDump opens what an engine, its hooks or torch.save wrote: one file of tensors, the folder of
// one run, or a folder with one folder for each case. A folder that is called like one of cases is
// a run of it, also without a run.json and without folders for its steps.
func OpenDump(dir string, cases ...string) (*Dump, error) {
	runs, err := dump.OpenCases(dir, dump.Options{Cases: cases, Unjudged: true})
	if err != nil {
		return nil, err
	}
	d := &Dump{Runs: map[string]*Run{}, open: runs}
	for _, r := range runs {
		if d.Runs[r.Info.Case] != nil {
			return nil, errors.Join(fmt.Errorf("golden: %s has the case %q twice", dir, r.Info.Case), d.Close())
		}
		if d.Runs[r.Info.Case], err = fromDump(r); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// Close closes the files.
func (d *Dump) Close() error { return dump.CloseAll(d.open) }
