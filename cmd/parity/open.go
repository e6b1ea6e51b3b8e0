package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// The two dumps that are compared; further ones have the roles of --also.
const (
	goldenRole = "golden"
	actualRole = "actual"
)

// inputs are all that the command line names, open.
type inputs struct {
	*inputFlags
	runs    map[string][]*dump.Run // by role; none of a file that another tool wrote
	opt     judge.Options
	stderr  io.Writer
	closing []func() error
}

// open opens all dumps of the command line, and what is evidence beside them: what cannot be read is an error at once,
// not only when a run fails. Headerless files are read as the flags say, or else as those of the golden.
func (f *inputFlags) open(stderr io.Writer) (in *inputs, err error) {
	in = &inputs{inputFlags: f, runs: map[string][]*dump.Run{}, stderr: stderr}
	defer func() {
		if err != nil {
			in.close()
			in = nil
		}
	}()
	if in.opt, err = f.options(); err != nil {
		return in, err
	}
	in.opt.Progress = in.progress("comparing", worthALine)
	var o dump.Options
	if err := f.assume(&o); err != nil {
		return in, err
	}
	paths := f.Also()
	roles := append([]string{goldenRole, actualRole}, slices.Sorted(maps.Keys(paths))...)
	paths[goldenRole], paths[actualRole] = &f.Golden, &f.Actual
	for _, role := range roles {
		path, one := *paths[role], o
		if golden := in.runs[goldenRole]; len(golden) > 0 && o.Raw == nil {
			one.Raw = rawLike(golden[0])
		}
		if role == "injected" {
			one.Injection = f.Injection
		}
		one.Unjudged = !store.KeepsRuns(path) // beside the runs of one pass it has those along paths
		if path == "" || continuation.IsForeign(path) {
			continue
		}
		if in.runs[role], err = store.OpenCases(path, one); err != nil {
			return in, err
		}
		in.onClose(func() error { return dump.CloseAll(in.runs[role]) })
	}
	return in, errors.Join(in.assumePadding(), in.openEvidence())
}

func (in *inputs) onClose(f func() error) { in.closing = append(in.closing, f) }

// progress shows how far something is until the inputs are closed.
func (in *inputs) progress(what string, least int64) (set func(done, total int64)) {
	set, end := progress(in.stderr, what, least)
	in.onClose(func() error { end(); return nil })
	return set
}

func (in *inputs) close() {
	for _, f := range slices.Backward(in.closing) {
		f() // nothing was written
	}
}

// openEvidence opens the weights and the config of the reference.
func (in *inputs) openEvidence() (err error) {
	var config checkpoint.Config
	if in.Config != "" {
		if config, err = checkpoint.ReadConfig(in.Config); err != nil {
			return fmt.Errorf("--config: %w", err)
		}
	}
	weights, err := checkpoint.Open(in.Weights...)
	if err != nil {
		return fmt.Errorf("--weights: %w", err)
	}
	in.onClose(weights.Close)
	in.opt.Diagnosis = judge.Diagnosis{Mode: in.diagnose,
		Evidence: func() (checkpoint.Weights, checkpoint.Config, error) { return weights.Tensors, config, nil }}
	return in.sameModel(weights.Tensors)
}

// assume says what files hold that do not say it.
func (f *inputFlags) assume(o *dump.Options) error {
	if f.FP8 != "" {
		d, err := tensor.ParseDType(f.FP8)
		if err != nil || !d.IsFloat() || d.Size() != 1 {
			return usage("--assume fp8=%s: want a float of one byte: f8_e4m3, f8_e5m2, …", f.FP8)
		}
		o.FP8 = d
	}
	if f.Raw != "" {
		spec, err := raw.Parse(f.Raw)
		if err != nil {
			return usage("--assume raw: %v", err)
		}
		o.Raw = func(string, int64) (raw.Spec, error) { return spec, nil }
	}
	return nil
}

// assumePadding gives runs that do not say what is padding the mask that --assume names, [[1,1,0],…], as run.json has it.
func (in *inputs) assumePadding() error {
	if in.PadMask == "" {
		return nil
	}
	data, err := mapfile.Read(in.PadMask, mapfile.MaxListing)
	if err != nil {
		return fmt.Errorf("--assume pad_mask: %w", err)
	}
	info, err := dump.ParseInfo(in.PadMask, fmt.Appendf(nil, `{"schema":%d,"pad_mask":%s}`, dump.Schema, data))
	if err != nil {
		return usage("--assume pad_mask: want [[1,1,0],…], 0 or 1 per batch and token: %v", err)
	}
	for _, runs := range in.runs {
		for _, r := range runs {
			if r.RealTokens() == nil {
				r.Info.PadMask = info.PadMask
			}
		}
	}
	return nil
}

// encoding is the type that --assume names; tensor.Invalid without it.
func (f *inputFlags) encoding() (tensor.DType, error) {
	if f.Encoding == "" {
		return tensor.Invalid, nil
	}
	d, err := tensor.ParseDType(f.Encoding)
	if err != nil || !d.IsFloat() {
		return d, usage("--assume encoding=%s: want a float, such as bfloat16", f.Encoding)
	}
	return d, nil
}

// setEncoding gives the candidate's runs the encoding that --assume names.
func (in *inputs) setEncoding() error {
	d, err := in.encoding()
	if err != nil || d == tensor.Invalid {
		return err
	}
	for _, r := range in.runs[actualRole] {
		said := &r.Info.Encoding
		if said.Compute != "" && said.Compute != d.String() {
			return usage("--assume encoding=%s: the run in %s says that its encoding is %s", d, r.Path, *said)
		}
		said.Compute = d.String()
	}
	return nil
}

// inCase says where the run of a role stands in a case.
var inCase = map[string]func(*judge.Case) **dump.Run{
	actualRole:    func(k *judge.Case) **dump.Run { return &k.Actual },
	"injected":    func(k *judge.Case) **dump.Run { return &k.Injected },
	"golden64":    func(k *judge.Case) **dump.Run { return &k.Golden64 },
	"noise":       func(k *judge.Case) **dump.Run { return &k.Encoded },
	"unquantised": func(k *judge.Case) **dump.Run { return &k.Unquantised },
	"unrounded":   func(k *judge.Case) **dump.Run { return &k.Unrounded },
}

// pair makes the cases of the golden, or without one those of the candidate, with their programs.
func (in *inputs) pair() (cases []judge.Case, err error) {
	for _, runs := range in.runs {
		for _, r := range runs {
			if err := r.Info.Judgeable(); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Path, err)
			}
		}
	}
	if err := in.setEncoding(); err != nil {
		return nil, err
	}
	of, path := in.runs[goldenRole], in.Golden
	if path == "" {
		of, path = in.runs[actualRole], in.Actual
	}
	for _, r := range of {
		cases = append(cases, judge.Case{Name: cmp.Or(r.Info.Case, filepath.Base(filepath.Clean(path))), Golden: r})
	}
	if in.Golden == "" {
		for i := range cases {
			cases[i].Golden, cases[i].Actual = nil, of[i]
		}
	} else {
		cases = withoutImages(cases, in.runs[actualRole])
		for role, to := range inCase {
			if err := pairCases(cases, in.runs[role], role == actualRole, to); err != nil {
				return nil, err
			}
		}
		in.alignSingles(cases)
		if err := in.noteSameFile(cases[0].Actual); err != nil {
			return nil, err
		}
	}
	of = nil
	for _, k := range cases {
		of = append(of, cmp.Or(k.Golden, k.Actual))
	}
	programs, err := in.openPrograms(of)
	for i, p := range programs {
		cases[i].Program = p
	}
	return cases, err
}

// openPrograms opens what the reference ran for each run, nil where that is not known: --program, or else what lies
// beside a golden.
func (in *inputs) openPrograms(runs []*dump.Run) (opened []*program.Program, err error) {
	if in.Golden != "" && in.Program != "" && len(runs) > 1 {
		return nil, usage("--program is of one case, and --golden has %d: lay each beside the run.json of its case, as %s",
			len(runs), dump.ProgramFile)
	}
	for _, r := range runs {
		var p *program.Program
		switch {
		case in.Golden == "":
			p, err = reference.OfCase(in.Program, r, len(runs) == 1)
		case in.Program == "":
			p = reference.Beside(r)
		default:
			p, err = reference.Open(in.Program, r.Entries)
		}
		if err != nil {
			return nil, fmt.Errorf("--program: %w", err)
		}
		if opened = append(opened, p); p != nil {
			in.onClose(p.Close)
		}
	}
	return opened, nil
}

// withoutImages leaves out the cases with images, with a note, where the candidate was given none at
// all: its engine may take none.
func withoutImages(cases []judge.Case, runs []*dump.Run) []judge.Case {
	if slices.ContainsFunc(runs, func(r *dump.Run) bool { return r.Info.Images != nil }) {
		return cases
	}
	var left []string
	texts := slices.DeleteFunc(slices.Clone(cases), func(k judge.Case) bool {
		if k.Golden.Info.Images == nil {
			return false
		}
		left = append(left, k.Name)
		return true
	})
	if len(texts) == 0 || left == nil {
		return cases
	}
	texts[0].Golden.Notes = append(texts[0].Golden.Notes, fmt.Sprintf("not compared: %s: the candidate was given no images", strings.Join(left, ", ")))
	return texts
}

// pairCases gives each case the run of its name; all must have one. Two single runs belong together, whatever they
// are called.
func pairCases(cases []judge.Case, runs []*dump.Run, all bool, to func(*judge.Case) **dump.Run) error {
	for i := range cases {
		k := &cases[i]
		for _, r := range runs {
			if r.Info.Case == k.Name || len(cases) == 1 && len(runs) == 1 {
				*to(k) = r
			}
		}
		if *to(k) == nil && all {
			return fmt.Errorf("the candidate has no case %q, it has %s", k.Name, dump.CaseNames(runs))
		}
	}
	return nil
}

// alignSingles gives two files with one tensor each the same label: what they are called means nothing.
func (in *inputs) alignSingles(cases []judge.Case) {
	for _, path := range []string{in.Golden, in.Actual} {
		if st, err := os.Stat(path); err != nil || st.IsDir() {
			return
		}
	}
	g, a := cases[0].Golden, cases[0].Actual
	if len(g.Entries) == 1 && len(a.Entries) == 1 {
		to, from := &a.Entries[0], &g.Entries[0]
		to.Step, to.Layer, to.Port = from.Step, from.Layer, from.Port
	}
}

const sameDump = "golden and actual are the same: this shows only that the dump can be read"

// noteSameFile notes that two dumps are one.
func (in *inputs) noteSameFile(actual *dump.Run) error {
	same, err := sameFile(in.Golden, in.Actual)
	if err == nil && same {
		actual.Notes = append(actual.Notes, sameDump)
	}
	return err
}

// sameModel refuses weights that are of another model than the golden: a layer that puts out more or fewer numbers
// than the weight of its name has rows or columns.
func (in *inputs) sameModel(weights checkpoint.Weights) error {
	if len(weights) == 0 {
		return nil
	}
	for _, golden := range in.runs[goldenRole] {
		for _, e := range golden.Entries {
			shape := e.Tensor.Shape()
			if e.Port != "output" || !e.Tensor.DType().IsFloat() || len(shape) < 2 {
				continue
			}
			key, w := weights.Of(e.Layer, "weight")
			if w != nil && len(w.Shape()) == 2 && !slices.Contains(w.Shape(), shape[len(shape)-1]) {
				return fmt.Errorf("--weights: %s is of another model: %s of the golden puts out %d numbers, and %s is %s",
					label.Few(in.Weights), e.Layer, shape[len(shape)-1], key, tensor.FormatShape(w.Shape()))
			}
		}
	}
	return nil
}

// rawLike reads headerless files of a candidate (MAX's print style BINARY) with the dtype and shape
// of the golden port of the same layer that has as many bytes. Of several, one of the same label
// and port goes first.
func rawLike(golden *dump.Run) func(name string, size int64) (raw.Spec, error) {
	byKey := map[string][]dump.Entry{}
	for _, e := range golden.Entries {
		key := match.Key(e.Layer)
		byKey[key] = append(byKey[key], e)
	}
	return func(name string, size int64) (raw.Spec, error) {
		layer, port := label.Split(name)
		best, rank := raw.Spec{}, 0
		for _, e := range byKey[match.Key(layer)] {
			t := e.Tensor
			shape := t.Shape()
			switch bytes := int64(t.DType().Size()); {
			case label.IsInput(e.Port) != label.IsInput(port):
				continue
			case size == bytes*int64(t.Len()):
			case size == bytes*int64(t.RowLen()) && len(shape) > 0: // a generating model's last row
				shape = []int{1, t.RowLen()}
			default:
				continue
			}
			r := 1
			if e.Port == port {
				r++
			}
			if e.Layer == layer {
				r += 2
			}
			if r > rank {
				best, rank = raw.Spec{DType: t.DType(), Shape: shape}, r
			}
		}
		if rank == 0 {
			return best, fmt.Errorf("%w: no port of the golden's layer has %d bytes: say dtype and shape with "+
				"--assume raw=DTYPE:SHAPE", dump.ErrUnknownShape, size)
		}
		return best, nil
	}
}
