package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/session"
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
	runs     map[string][]*dump.Run // by role; none of a file that another tool wrote
	programs []*program.Program     // by case, nil where it is not known
	opt      judge.Options
	stderr   io.Writer
	closing  []func() error
}

// open opens all dumps of the command line, and what is evidence beside them: what cannot be read is an error at once,
// not only when a run fails. Headerless files are read as the flags say, or else as those of the golden.
// The caller closes them, after an error, too.
func (f *inputFlags) open(stderr io.Writer) (in *inputs, err error) {
	in = &inputs{inputFlags: f, runs: map[string][]*dump.Run{}, stderr: stderr}
	var o dump.Options
	if err := f.assume(&o); err != nil {
		return in, err
	}
	if in.opt, err = f.options(); err != nil {
		return in, err
	}
	in.opt.Progress = in.progress("comparing", worthALine)
	files := f.Also()
	roles := append([]string{goldenRole, actualRole}, slices.Sorted(maps.Keys(files))...)
	files[goldenRole], files[actualRole] = &f.Golden, &f.Actual
	for _, role := range roles {
		path, one := *files[role], o
		if path == "" || paths.IsForeign(path) {
			continue
		}
		if golden := in.runs[goldenRole]; len(golden) > 0 && o.Raw == nil {
			one.Raw = rawLike(golden[0])
		}
		if role == "injected" {
			one.Injection = f.Injection
		}
		one.Unjudged = !store.KeepsRuns(path) // beside the runs of one pass it has those along paths
		if in.runs[role], err = store.OpenCases(path, one); err != nil {
			return in, err
		}
		in.onClose(func() error { return dump.CloseAll(in.runs[role]) })
	}
	return in, errors.Join(in.assumePadding(), in.openEvidence())
}

func (in *inputs) all() []*dump.Run { return slices.Concat(slices.Collect(maps.Values(in.runs))...) }

// cases are the runs of which there is one for each case: the golden's, or without one the candidate's.
func (in *inputs) cases() []*dump.Run {
	if in.Golden == "" {
		return in.runs[actualRole]
	}
	return in.runs[goldenRole]
}

func (in *inputs) onClose(f func() error) { in.closing = append(in.closing, f) }

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

func (f *inputFlags) assume(o *dump.Options) (err error) {
	if o.FP8, err = float("fp8", f.FP8, "a float of one byte: f8_e4m3, f8_e5m2, …", 1); err != nil {
		return err
	}
	if f.compute, err = float("encoding", f.Encoding, "a float, such as bfloat16", 0); err != nil || f.Raw == "" {
		return err
	}
	spec, err := raw.Parse(f.Raw)
	if err != nil {
		return usage("--assume raw: %v", err)
	}
	o.Raw = func(string, int64) (raw.Spec, error) { return spec, nil }
	return nil
}

// float is the type that a key of --assume names, of so many bytes, 0 for any; tensor.Invalid without one.
func float(key, name, want string, size int) (tensor.DType, error) {
	d, err := tensor.ParseDType(name)
	switch {
	case name == "":
		return tensor.Invalid, nil
	case err != nil || !d.IsFloat() || size > 0 && d.Size() != size:
		return d, usage("--assume %s=%s: want %s", key, name, want)
	}
	return d, nil
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
	for _, r := range in.all() {
		if r.RealTokens() == nil {
			r.Info.PadMask = info.PadMask
		}
	}
	return nil
}

// ready gives the candidate's runs the encoding that --assume names, and a note where they are the golden's.
func (in *inputs) ready() error {
	for i, r := range in.runs[actualRole] {
		said := &r.Info.Encoding
		if in.compute != tensor.Invalid {
			if said.Compute != "" && said.Compute != in.compute.String() {
				return usage("--assume encoding=%s: the run in %s says that its encoding is %s", in.compute, r.Path, *said)
			}
			said.Compute = in.compute.String()
		}
		if i == 0 && sameFile(in.Golden, in.Actual) {
			r.Notes = append(r.Notes, sameDump)
		}
	}
	return nil
}

const sameDump = "golden and actual are the same: this shows only that the dump can be read"

// byRole says where the run of a role stands in a case.
func byRole(k *judge.Case) map[string]**dump.Run {
	return map[string]**dump.Run{actualRole: &k.Actual, "injected": &k.Injected, "golden64": &k.Golden64,
		"noise": &k.Encoded, "unquantised": &k.Unquantised, "unrounded": &k.Unrounded}
}

// pair makes the cases of the golden, or without one those of the candidate, with their programs.
func (in *inputs) pair() (cases []judge.Case, err error) {
	for _, r := range in.all() {
		if err := r.Info.Judgeable(); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Path, err)
		}
	}
	if err := in.ready(); err != nil {
		return nil, err
	}
	of := withoutImages(in.cases(), in.runs[actualRole])
	if err := in.openPrograms(of); err != nil {
		return nil, err
	}
	for i, r := range of {
		k := judge.Case{Name: cmp.Or(r.Info.Case, filepath.Base(filepath.Clean(cmp.Or(in.Golden, in.Actual)))), Golden: r,
			Program: in.programs[i]}
		for role, to := range byRole(&k) {
			*to = caseOf(in.runs[role], k.Name, len(of))
		}
		if in.Golden == "" {
			k.Golden, k.Actual = nil, r
		}
		if k.Actual == nil {
			return nil, fmt.Errorf("the candidate has no case %q, it has %s", k.Name, dump.CaseNames(in.runs[actualRole]))
		}
		cases = append(cases, k)
	}
	in.alignSingles(cases)
	return cases, nil
}

// caseOf is the run of a case, nil if there is none. Two single runs belong together, whatever they are called.
func caseOf(runs []*dump.Run, name string, cases int) *dump.Run {
	for _, r := range runs {
		if r.Info.Case == name || len(runs) == 1 && cases == 1 {
			return r
		}
	}
	return nil
}

// openPrograms opens what the reference ran for each run: --program, or what lies beside a golden; nil if neither.
func (in *inputs) openPrograms(runs []*dump.Run) error {
	if in.Golden != "" && in.Program != "" && len(runs) > 1 {
		return usage("--program is of one case, and --golden has %d: lay each beside the run.json of its case, as %s",
			len(runs), dump.ProgramFile)
	}
	for _, r := range runs {
		var p *program.Program
		var err error
		switch {
		case in.Golden == "":
			p, err = session.ProgramOfCase(in.Program, r, len(runs) == 1)
		case in.Program == "":
			p = session.ProgramBeside(r)
		default:
			p, err = session.OpenProgram(in.Program, r.Entries)
		}
		if err != nil {
			return fmt.Errorf("--program: %w", err)
		}
		if in.programs = append(in.programs, p); p != nil {
			in.onClose(p.Close)
		}
	}
	return nil
}

// withoutImages leaves out, with a note, cases with images where the candidate was given none: its engine may take none.
func withoutImages(goldens, runs []*dump.Run) []*dump.Run {
	shown := func(r *dump.Run) bool { return r.Info.Images != nil }
	var left []string
	texts := slices.DeleteFunc(slices.Clone(goldens), func(r *dump.Run) bool {
		if shown(r) {
			left = append(left, r.Info.Case)
		}
		return shown(r)
	})
	if left == nil || len(texts) == 0 || slices.ContainsFunc(runs, shown) {
		return goldens
	}
	texts[0].Notes = append(texts[0].Notes,
		fmt.Sprintf("not compared: %s: the candidate was given no images", strings.Join(left, ", ")))
	return texts
}

// alignSingles gives two files with one tensor each the same label: what they are called means nothing.
func (in *inputs) alignSingles(cases []judge.Case) {
	if in.Golden == "" || mapfile.IsFolder(in.Golden) || mapfile.IsFolder(in.Actual) {
		return
	}
	g, a := cases[0].Golden.Entries, cases[0].Actual.Entries
	if len(g) == 1 && len(a) == 1 {
		a[0].Step, a[0].Layer, a[0].Port = g[0].Step, g[0].Layer, g[0].Port
	}
}

// sameModel refuses weights of another model: a layer puts out as many numbers as its weight has rows or columns, or, where
// these are of groups that are an axis of their own, as many as fit into that.
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
			n := shape[len(shape)-1]
			puts := func(of int) bool { return of == n || len(shape) > 2 && of == n*shape[len(shape)-2] }
			if w != nil && len(w.Shape()) == 2 && !slices.ContainsFunc(w.Shape(), puts) {
				return fmt.Errorf("--weights: %s is of another model: %s of the golden puts out %d numbers, and %s is %s",
					label.Few(in.Weights), e.Layer, n, key, tensor.FormatShape(w.Shape()))
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
