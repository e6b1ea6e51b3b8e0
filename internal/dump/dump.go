// Package dump opens what one run of an engine wrote: its tensors by layer and port, in execution
// order.
//
// A dump is a folder of files DIR/<step>/<layer>-<port>, in one of the [Formats], with
// DIR/run.json. A folder without run.json is also read: files directly in it are step 0, the order
// is that of tensor_names.txt or else the natural order of the names, and a name without a known
// port is a tap. A single file of named tensors is a dump as well.
//
// # Printed tensors
//
// Modular MAX has two styles, set with InferenceSession.set_debug_print_options:
//
//	label = tensor([[0.5000, 1.5000, 2.5000, ..., 5.5000, 6.5000, 7.5000],
//	[8.5000, 9.5000, 10.5000, ..., 13.5000, 14.5000, 15.5000]], dtype=f32, shape=[2,8])     COMPACT
//	label = tensor<2x3xf32> [5.000000e-01, 1.500000e+00, 2.500000e+00, …]                   FULL
//
// COMPACT prints four decimals whatever the magnitude. Of more than six columns, rows or matrices
// it prints the first and the last three; all axes but the last two count as one list of matrices.
// MAX cuts every number after 31 characters: COMPACT prints 3e38 as 31 digits, and it is unknown
// how many are missing. Such a value is not known.
//
// The output of torch, print(f"{label} = {tensor}"), is read if torch printed every element. If it
// printed a summary, the shape is unknown: the error says how to print the rest.
//
// Lines that do not begin like a tensor are skipped.
package dump

import (
	"context"
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// Where the order of a run's entries comes from.
const (
	OrderRunFile = "run.json"
	OrderNames   = "tensor_names.txt"
	OrderNatural = "the natural order of the names"
	orderFile    = "the order in the file"
)

// ErrEmpty says that a folder or file holds no tensor at all.
var ErrEmpty = errors.New("no tensors")

// ErrUnknownShape is what Options.Raw returns for a headerless file whose shape it does not know.
// In a folder such a file is left out, with a note.
var ErrUnknownShape = errors.New("unknown shape")

// Run is an open dump. Its tensors are views of mapped files and must not be used after Close.
type Run struct {
	Path    string
	Info    Info // without run.json zero except for the mode
	HasInfo bool
	OrderBy string // one of the Order constants
	Entries []Entry
	Notes   []string       // remarks on the reading, for the report
	Joined  Joined         // of a recording; nil if it does not say
	Program string         // the file of the program that was recorded with it; "" for none
	changed []func() error // see Watch
	closing []func() error // see OnClose
}

// Joined lists, by step, the golden outputs ("<layer>-<port>") that a run had something for when it
// was recorded: it must have them whenever it is judged.
type Joined map[string][]string

// Entry is one tensor of a run.
type Entry struct {
	Step, Layer, Port string // Layer is as dumped, with its call count: "model.norm(2)"
	Seq               int    // execution index in the run
	Tensor            *tensor.Tensor
	Printed           *Printed // how much of it a log shows; nil for a dumped tensor
}

// Label is "<layer>-<port>".
func (e Entry) Label() string { return label.Join(e.Layer, e.Port) }

// Options are those of [OpenCases].
type Options struct {
	// Raw returns the dtype and shape of a headerless file from its label and its size in bytes. If
	// it is nil, such files are refused.
	Raw func(label string, size int64) (raw.Spec, error)
	// FP8 is the dtype of arrays in .npy and .npz files whose header says only that an element has
	// one byte ("<V1").
	FP8 tensor.DType
	// Injection overrides what run.json or the ports say: Nested or Isolated.
	Injection string
	// Mode chooses the runs of a folder that keeps several: Injected, or else Standard.
	Mode string
	// Cases has the names of the cases that are asked for: a folder of such a name in a folder that
	// OpenCases opens is a dump, also where it has no run.json and no folders for its steps.
	Cases []string
	// Unjudged also opens runs that this version cannot judge, so that they can be looked at.
	// Without it they are refused with ErrUnjudged.
	Unjudged bool
}

// New makes a run of entries that are open elsewhere, and numbers them in their order.
func New(path string, info Info, orderBy string, entries []Entry) *Run {
	for i := range entries {
		entries[i].Seq = i
	}
	return &Run{Path: path, Info: info, HasInfo: true, OrderBy: orderBy, Entries: entries}
}

// Watch adds a check to Changed.
func (r *Run) Watch(changed func() error) { r.changed = append(r.changed, changed) }

// OnClose adds what Close does besides.
func (r *Run) OnClose(f func() error) { r.closing = append(r.closing, f) }

// Changed returns an error if a file of the run is not as it was when it was opened: what was read
// of it proves nothing.
func (r *Run) Changed() error {
	return vec.Each(context.Background(), len(r.changed), func(i int) error { return r.changed[i]() })
}

// Close closes all files.
func (r *Run) Close() error {
	var errs []error
	for _, f := range r.closing {
		errs = append(errs, f())
	}
	r.closing = nil
	return errors.Join(errs...)
}

// Steps lists the steps in the order of their first tensor.
func (r *Run) Steps() []string {
	var steps []string
	seen := map[string]bool{}
	for _, e := range r.Entries {
		if !seen[e.Step] {
			seen[e.Step] = true
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// Find returns the entry of a step, layer and port. It goes through all of them.
func (r *Run) Find(step, layer, port string) (Entry, bool) {
	for _, e := range r.Entries {
		if e.Step == step && e.Layer == layer && e.Port == port {
			return e, true
		}
	}
	return Entry{}, false
}

// finish numbers the entries, refuses two with the same name, and settles the form of an injected
// run.
func (r *Run) finish(opt Options) error {
	seen := make(map[[3]string]bool, len(r.Entries))
	nested := false
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Seq = i
		k := [3]string{e.Step, e.Layer, e.Port}
		if seen[k] {
			return fmt.Errorf("dump: open %q: step %s has %q twice: keep one file of it", r.Path, e.Step, e.Label())
		}
		seen[k] = true
		nested = nested || label.RoleOf(e.Port) == label.RoleComputed
	}
	if opt.Injection != "" {
		r.Info.Injection = opt.Injection
	}
	if r.Info.Injection == "" && r.Info.Mode == Injected || nested && !r.HasInfo {
		r.Info.Mode, r.Info.Injection = Injected, Isolated
		if nested {
			r.Info.Injection = Nested
		}
	}
	return nil
}

func (r *Run) note(s string) { r.Notes = append(r.Notes, s) }
