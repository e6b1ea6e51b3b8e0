package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Run is what the reference computed for one case: what [Import] makes goldens of. [OpenDump] reads one; a program can make one, too.
type Run struct {
	From     string            // what errors name: a folder or file
	Engine   string            // "torch", …
	Versions map[string]string // of the engine and its parts
	Device   string
	Encoding string // dtype that it ran in; "" if it does not say
	TokenIDs json.RawMessage
	PadMask  [][]int // of the first step, [batch][token], 0 for padding; nil without padding
	Text     string  // what the reference said by itself to the case
	Injected bool    // its layers got inputs of another run: such a run cannot be golden
	Ports    []Port  // in execution order
}

// Port is one tensor of a run.
type Port struct {
	Step, Layer, Port string // Port is "output", "input_0", …
	Tensor            *tensor.Tensor
	Partial           bool // only some values are known, as in a shortened log: it cannot be golden
}

// Label is "<layer>-<port>".
func (p Port) Label() string { return label.Join(p.Layer, p.Port) }

// Steps lists the steps in the order of their first tensor.
func (r *Run) Steps() []string {
	var out []string
	for _, p := range r.Ports {
		if !slices.Contains(out, p.Step) {
			out = append(out, p.Step)
		}
	}
	return out
}

// fromDump takes the tensors of a run that stays open.
func fromDump(r *dump.Run) *Run {
	out := &Run{From: r.Path, Engine: r.Info.Engine, Versions: r.Info.Versions, Device: r.Info.Device, Encoding: r.Info.Encoding, TokenIDs: json.RawMessage(r.Info.TokenIDs),
		PadMask: r.Info.PadMask, Text: r.Info.ReferenceText, Injected: r.Info.Mode == dump.Injected}
	for _, e := range r.Entries {
		out.Ports = append(out.Ports, Port{Step: e.Step, Layer: e.Layer, Port: e.Port, Tensor: e.Tensor, Partial: e.Printed != nil})
	}
	return out
}

// Dump is an open dump folder: the runs of its cases, whose tensors are views of its files.
type Dump struct {
	Runs map[string]*Run // by case; "" is the case of a dump that does not say
	open []*dump.Run
}

// OpenDump opens what an engine, hooks or torch.save wrote: a folder of one run, or one folder for each case.
func OpenDump(dir string) (*Dump, error) {
	runs, err := dump.OpenCases(dir, dump.Options{})
	if err != nil {
		return nil, err
	}
	d := &Dump{Runs: map[string]*Run{}, open: runs}
	for _, r := range runs {
		if d.Runs[r.Info.Case] != nil {
			return nil, errors.Join(fmt.Errorf("golden: %s has the case %q twice", dir, r.Info.Case), d.Close())
		}
		d.Runs[r.Info.Case] = fromDump(r)
	}
	return d, nil
}

// Close closes the files. The tensors must not be used afterwards.
func (d *Dump) Close() error { return dump.CloseAll(d.open) }
