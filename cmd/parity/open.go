package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// The two dumps that are compared; further ones have the roles of --also.
const (
	goldenRole = "golden"
	actualRole = "actual"
)

// dumps are the runs of all dumps that are given, by their roles.
type dumps map[string][]*dump.Run

func (d dumps) close() {
	for _, runs := range d {
		dump.CloseAll(runs)
	}
}

// openDumps opens all dumps of the command line. Headerless files are read as the flags say, or else as those of the
// golden.
func (f *inputFlags) openDumps(o dump.Options) (d dumps, err error) {
	if err := f.assume(&o); err != nil {
		return nil, err
	}
	paths := f.Also()
	roles := append([]string{goldenRole, actualRole}, slices.Sorted(maps.Keys(paths))...)
	paths[goldenRole], paths[actualRole] = &f.Golden, &f.Actual
	d = dumps{}
	for _, role := range roles {
		one := o
		if golden := d[goldenRole]; len(golden) > 0 && o.Raw == nil {
			one.Raw = rawLike(golden[0])
		}
		if role == "injected" {
			one.Injection = f.Injection
		}
		if path := *paths[role]; path != "" {
			if d[role], err = store.OpenCases(path, one); err != nil {
				d.close()
				return nil, err
			}
		}
	}
	if err := f.setEncoding(d[actualRole]); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
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
func (f *inputFlags) setEncoding(runs []*dump.Run) error {
	d, err := f.encoding()
	if err != nil || d == tensor.Invalid {
		return err
	}
	for _, r := range runs {
		said := &r.Info.Encoding
		if said.Compute != "" && said.Compute != d.String() {
			return usage("--assume encoding=%s: the run in %s says that its encoding is %s", d, r.Path, *said)
		}
		said.Compute = d.String()
	}
	return nil
}

// open opens all dumps of the command line and pairs their cases.
func (f *inputFlags) open() (cases []judge.Case, closeAll func(), err error) {
	d, err := f.openDumps(dump.Options{})
	if err != nil {
		return nil, nil, err
	}
	cases, err = f.pair(d)
	var programs []*program.Program
	if err == nil {
		of := d[actualRole]
		if f.Golden != "" {
			of = nil
			for _, k := range cases {
				of = append(of, k.Golden)
			}
		}
		programs, err = f.programsOf(of)
	}
	if err != nil {
		d.close()
		return nil, nil, err
	}
	for i, p := range programs {
		cases[i].Program = p
	}
	return cases, func() { closePrograms(programs); d.close() }, nil
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

// pair makes the cases of the golden, or without one those of the candidate.
func (f *inputFlags) pair(d dumps) (cases []judge.Case, err error) {
	named := func(r *dump.Run, path string) string { return cmp.Or(r.Info.Case, filepath.Base(filepath.Clean(path))) }
	if f.Golden == "" {
		for _, r := range d[actualRole] {
			cases = append(cases, judge.Case{Name: named(r, f.Actual), Actual: r})
		}
		return cases, nil
	}
	for _, g := range d[goldenRole] {
		cases = append(cases, judge.Case{Name: named(g, f.Golden), Golden: g})
	}
	cases = withoutImages(cases, d[actualRole])
	for role, to := range inCase {
		if err := pairCases(cases, d[role], role == actualRole, to); err != nil {
			return nil, err
		}
	}
	f.alignSingles(cases)
	for _, k := range cases {
		if k.Actual.OtherPadding(k.Golden) && k.Actual.AlongPadding(k.Golden) {
			return nil, fmt.Errorf("%s is padded: %w", f.Actual, dump.ErrUnjudged)
		}
	}
	return cases, f.noteSameFile(cases[0].Actual)
}

// programsOf opens what the reference ran for each run, nil where that is not known: --program, or else what lies beside
// a golden.
func (f *inputFlags) programsOf(runs []*dump.Run) (opened []*program.Program, err error) {
	if f.Golden != "" && f.Program != "" && len(runs) > 1 {
		return nil, usage("--program is of one case, and --golden has %d: lay each beside the run.json of its case, as %s",
			len(runs), dump.ProgramFile)
	}
	for _, r := range runs {
		var p *program.Program
		switch {
		case f.Golden == "":
			p, err = reference.OfCase(f.Program, r, len(runs) == 1)
		case f.Program == "":
			p = reference.Beside(r)
		default:
			p, err = reference.Open(f.Program, r.Entries)
		}
		if err != nil {
			closePrograms(opened)
			return nil, fmt.Errorf("--program: %w", err)
		}
		opened = append(opened, p)
	}
	return opened, nil
}

func closePrograms(list []*program.Program) {
	for _, p := range list {
		if p != nil {
			p.Close()
		}
	}
}

// withoutImages leaves out the cases with images, with a note, where the candidate was given none at
// all: its engine may take none.
func withoutImages(cases []judge.Case, runs []*dump.Run) []judge.Case {
	if slices.ContainsFunc(runs, func(r *dump.Run) bool { return r.Info.Images != nil }) {
		return cases
	}
	var texts []judge.Case
	var left []string
	for _, k := range cases {
		if k.Golden.Info.Images == nil {
			texts = append(texts, k)
		} else {
			left = append(left, k.Name)
		}
	}
	if len(texts) == 0 || len(left) == 0 {
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
func (f *inputFlags) alignSingles(cases []judge.Case) {
	for _, path := range []string{f.Golden, f.Actual} {
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
func (f *inputFlags) noteSameFile(actual *dump.Run) error {
	same, err := sameFile(f.Golden, f.Actual)
	if err == nil && same {
		actual.Notes = append(actual.Notes, sameDump)
	}
	return err
}

// sameModel refuses weights that are of another model than the golden: a layer that puts out more or fewer numbers
// than the weight of its name has rows or columns.
func (f *inputFlags) sameModel(evidence search.Evidence, golden *dump.Run) error {
	weights, _, err := evidence()
	if err != nil || golden == nil || len(weights) == 0 {
		return err
	}
	for _, e := range golden.Entries {
		shape := e.Tensor.Shape()
		if e.Port != "output" || !e.Tensor.DType().IsFloat() || len(shape) < 2 {
			continue
		}
		key, w := weights.Of(e.Layer, "weight")
		if w != nil && len(w.Shape()) == 2 && !slices.Contains(w.Shape(), shape[len(shape)-1]) {
			return fmt.Errorf("--weights: %s is of another model: %s of the golden puts out %d numbers, and %s is %s",
				label.Few(f.Weights), e.Layer, shape[len(shape)-1], key, tensor.FormatShape(w.Shape()))
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
