package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// compare opens the dumps, compares them, and hands the comparison over while its tensors can be read.
func (f *inputFlags) compare(ctx context.Context, stderr io.Writer, done func(*judge.Comparison, search.Evidence) error) error {
	collectSeldom()
	opt, bar, end, err := f.begin(stderr)
	if err != nil {
		return err
	}
	defer end()
	cases, closeAll, err := f.open()
	if err != nil {
		return err
	}
	defer closeAll()
	for _, k := range cases {
		if err := f.sameModel(opt.Diagnosis.Evidence, k.Golden); err != nil {
			return err
		}
	}
	if f.Golden == "" {
		var programs []*program.Program
		for _, k := range cases {
			programs = append(programs, k.Program)
		}
		of, replayed, err := f.alone(stderr, programs, &opt)
		if err != nil {
			return err
		}
		made, undo, err := reference.Alone(ctx, cases, of)
		replayed()
		if err != nil {
			return err
		}
		defer undo()
		cases = made
	}
	var joined string
	err = mapfile.Guard(func() error { joined = f.byValue(cases, &opt.Match); return nil })
	if err != nil {
		return err
	}
	c, err := judge.Compare(ctx, cases, opt)
	if err != nil {
		return err
	}
	bar.done()
	if joined != "" {
		c.Notes = append([]string{joined}, c.Notes...)
	}
	for _, n := range checkpoint.Unread(f.Weights...) {
		c.Note(n)
	}
	return done(c, opt.Diagnosis.Evidence)
}

// mostMemory is up to how many bytes memory is collected seldom, when it has grown by so many percent. Pieces that are
// replayed make many small tensors: collecting them took a quarter of the time, November 2026.
const mostMemory, seldom = 3 << 29, 300

func collectSeldom() {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(mostMemory)
		debug.SetGCPercent(seldom)
	}
}

// alone says how goldens are made of programs and the candidate's own tensors. done ends the progress
// that is shown.
func (f *inputFlags) alone(stderr io.Writer, programs []*program.Program, opt *judge.Options) (of judge.AloneOptions, done func(), err error) {
	of.Options = *opt
	if f.Layers != "" {
		wants, blocks, err := reference.Blocks(f.Layers, programs)
		if err != nil {
			return of, nil, usage("--layers %v", err)
		}
		of.Wants = wants
		for _, b := range blocks {
			p, err := glob.Compile(b)
			if err != nil {
				return of, nil, usage("--layers: %v", err)
			}
			opt.Scope = append(opt.Scope, p)
		}
	}
	bar := newReplaying(stderr)
	of.Progress = bar.set
	return of, bar.done, nil
}

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
	if o.FP8, err = parseFP8(f.FP8); err != nil {
		return nil, err
	}
	if f.Raw != "" {
		spec, err := raw.Parse(f.Raw)
		if err != nil {
			return nil, usage("--raw: %v", err)
		}
		o.Raw = func(string, int64) (raw.Spec, error) { return spec, nil }
	}
	paths := f.Also()
	roles := append([]string{goldenRole, actualRole}, slices.Sorted(maps.Keys(paths))...)
	paths[goldenRole], paths[actualRole] = &f.Golden, &f.Actual
	d = dumps{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
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
				return nil, err
			}
		}
	}
	return d, f.setEncoding(d[actualRole])
}

// open opens all dumps of the command line and pairs their cases.
func (f *inputFlags) open() (cases []judge.Case, closeAll func(), err error) {
	d, err := f.openDumps(dump.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if cases, err = f.pair(d); err != nil {
		return nil, nil, err
	}
	of := d[actualRole]
	if f.Golden != "" {
		of = nil
		for _, k := range cases {
			of = append(of, k.Golden)
		}
	}
	programs, err := f.programsOf(of)
	if err != nil {
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

// setEncoding gives the candidate's runs the encoding of --encoding.
func (f *inputFlags) setEncoding(runs []*dump.Run) error {
	if f.Encoding == "" {
		return nil
	}
	d, err := tensor.ParseDType(f.Encoding)
	if err == nil && !d.IsFloat() {
		err = fmt.Errorf("%s is no float", d)
	}
	if err != nil {
		return usage("--encoding: %v", err)
	}
	for _, r := range runs {
		said := &r.Info.Encoding
		if said.Compute != "" && said.Compute != d.String() {
			return usage("--encoding %s: the run in %s says that its encoding is %s", d, r.Path, *said)
		}
		said.Compute = d.String()
	}
	return nil
}

// parseFP8 is the type of --fp8, Invalid without it.
func parseFP8(name string) (tensor.DType, error) {
	if name == "" {
		return tensor.Invalid, nil
	}
	d, err := tensor.ParseDType(name)
	if err == nil && (!d.IsFloat() || d.Size() != 1) {
		err = fmt.Errorf("%s is no float of one byte", d)
	}
	if err != nil {
		return tensor.Invalid, usage("--fp8: %v", err)
	}
	return d, nil
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
	if len(cases) == 1 && len(runs) == 1 {
		*to(&cases[0]) = runs[0]
		return nil
	}
	for i := range cases {
		k := &cases[i]
		for _, r := range runs {
			if r.Info.Case == k.Name {
				*to(k) = r
			}
		}
		if *to(k) == nil && all {
			return fmt.Errorf("--actual has no case %q, it has %s", k.Name, dump.CaseNames(runs))
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

// noteSameFile notes that two dumps are one.
func (f *inputFlags) noteSameFile(actual *dump.Run) error {
	same, err := sameFile(f.Golden, f.Actual)
	if err != nil {
		return err
	}
	if same {
		actual.Notes = append(actual.Notes, sameDump)
	}
	return nil
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

const sameDump = "golden and actual are the same: this shows only that the dump can be read"

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
			return best, fmt.Errorf("%w: no port of the golden's layer has %d bytes: say dtype and shape with --raw "+
				"DTYPE:SHAPE",
				dump.ErrUnknownShape, size)
		}
		return best, nil
	}
}
