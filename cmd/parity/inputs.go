package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// inputFlags are two dumps and what they are compared by: compare, try and verify ask for them, and
// report finds them in a report.
type inputFlags struct {
	report.Inputs
	diagnose setting.Diagnose
}

// both adds the flags that say what is compared.
func (f *inputFlags) both(c *cobra.Command, scope string) {
	fl := c.Flags()
	fl.StringVar(&f.Golden, "golden", "", "the reference's `dump`: a folder or a file")
	fl.StringVar(&f.Actual, "actual", "", "the candidate's `dump`")
	fl.StringVar(&f.PadMask, "pad-mask", "", "JSON `file` with 0 or 1 per [batch][token]: padding rows are left out")
	fl.StringVar(&f.Names, "names", "",
		"YAML `file` with names, ignore and scope as in fixture.yaml: which layers belong together and which count")
	fl.StringArrayVar(&f.Scope, "scope", nil, scope)
}

// format adds the flags that say what a dump does not say itself.
func (f *inputFlags) format(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.Encoding, "encoding", "", "`dtype` in which the candidate was asked to compute, where its run does not say it")
	fl.StringVar(&f.Raw, "raw", "", "dtype and shape of headerless files, as `f32:4x8` (default: those of the golden)")
	fl.StringVar(&f.FP8, "fp8", "", "`dtype` of 8-bit floats in .npy files, which do not say it: f8_e4m3, f8_e5m2, …")
}

// positional lets "compare A B" stand for --golden and --actual.
func (f *inputFlags) positional(command string, args []string) error {
	for _, a := range args {
		switch {
		case f.Golden == "" && f.Program != "" && f.Actual == "" && len(args) == 1:
			f.Actual = a
		case f.Golden == "":
			f.Golden = a
		case f.Actual == "":
			f.Actual = a
		default:
			return usage("%s: %q is one dump too many", command, a)
		}
	}
	switch {
	case f.Golden == "" && f.Program == "":
		return usage("%s: --golden is missing: the reference's dump", command)
	case f.Actual == "":
		return usage("%s: --actual is missing: the candidate's dump", command)
	}
	return nil
}

// scopeUsage is what --scope means where a whole comparison is judged.
const scopeUsage = "a pass needs only the layers that match this `pattern`, and what is in them; may be repeated"

// more adds the flags of further runs.
func (f *inputFlags) more(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.Injected, "injected", "", "the candidate's `dump` of a run on golden inputs")
	fl.StringVar(&f.Golden64, "golden64", "", "the reference's `dump` in float64")
	fl.StringVar(&f.Noise, "noise", "",
		"the reference's `dump` in the candidate's encoding (parity run --engine torch --encoding bfloat16\n"+
			"--follow GOLDEN): what that costs the reference is the measure, in place of the default tolerances")
	fl.StringVar(&f.Unquantised, "unquantised", "",
		"where --golden ran on dequantised weights: the reference's `dump` on the weights as they were, to say\n"+
			"what quantisation costs beside what the candidate adds")
	fl.StringVar(&f.Unrounded, "unrounded", "",
		"where --golden rounds the inputs of products, too: the reference's `dump` without that")
	fl.TextVar(&f.diagnose, "diagnose", setting.DiagnoseFull,
		"time for the search of causes when the comparison fails: `off`, fast or full")
}

// model adds the flags of the reference's model.
func (f *inputFlags) model(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.Weights, "weights", nil,
		"the reference's weights: a safetensors `file`, its index.json, a .gguf file, or a folder; may be repeated")
	fl.StringVar(&f.Config, "config", "", "the model's config.json")
}

// number is a flag that knows whether it was given.
type number struct{ to **float64 }

func (n number) Type() string   { return "float" }
func (n number) String() string { return "" }
func (n number) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	*n.to = &v
	return err
}

// made says in a report how it was made.
func (f *inputFlags) made(command string) (*report.Made, error) {
	dir, err := os.Getwd()
	return &report.Made{Command: command, Dir: dir, Inputs: f.Inputs}, err
}

// compared is a comparison while its tensors can be read, with what the search for causes may use
// besides the dumps.
type compared struct {
	*judge.Comparison
	evidence func() (checkpoint.Weights, checkpoint.Config, error)
}

// compare opens the dumps, compares them, and hands the comparison over.
func (f *inputFlags) compare(ctx context.Context, stderr io.Writer, done func(compared) error) error {
	opt, err := f.options()
	if err != nil {
		return err
	}
	cases, closeAll, err := f.open()
	if err != nil {
		return err
	}
	defer closeAll()
	evidence, closeEvidence, err := f.evidence()
	if err != nil {
		return err
	}
	defer closeEvidence()
	for _, k := range cases {
		if err := f.sameModel(evidence, k.Golden); err != nil {
			return err
		}
	}
	opt.Diagnosis = judge.Diagnosis{Mode: f.diagnose, Evidence: evidence}
	bar := newProgress(stderr)
	opt.Progress = bar.set
	if f.Golden == "" {
		var programs []*program.Program
		for _, k := range cases {
			programs = append(programs, k.Program)
		}
		of, done, err := f.alone(stderr, programs, &opt)
		if err != nil {
			return err
		}
		made, undo, err := reference.Alone(ctx, cases, of)
		done()
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
	bar.done()
	if scope := (*judge.ScopeError)(nil); errors.As(err, &scope) {
		return usage("%v", err)
	} else if err != nil {
		return err
	}
	if joined != "" {
		c.Notes = append([]string{joined}, c.Notes...)
	}
	for _, n := range checkpoint.Unread(f.Weights...) {
		c.Note(n)
	}
	return done(compared{c, evidence})
}

// mostMemory is from how many bytes on memory is collected more often while layers of large models are
// replayed.
const mostMemory = 3 << 29

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
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mostMemory)
	}
	bar := newReplaying(stderr)
	of.Progress = bar.set
	return of, bar.done, nil
}

// options are what the flags ask of package judge.
func (f *inputFlags) options() (opt judge.Options, err error) {
	switch {
	case f.Injection != "" && f.Injection != dump.Nested && f.Injection != dump.Isolated:
		return opt, usage("--injection %s: want nested or isolated", f.Injection)
	case f.Unrounded != "" && f.Unquantised == "":
		return opt, usage("--unrounded is beside --unquantised, which is missing")
	case f.Golden == "" && (f.Injected != "" || f.Golden64 != "" || f.Noise != "" || f.Unquantised != "" || f.OnePass != ""):
		return opt, usage("--injected, --golden64, --noise, --unquantised and --one-pass stand beside --golden, which is missing")
	case f.Golden != "" && f.Layers != "":
		return opt, usage("--layers is for a run without --golden")
	case f.Injection != "" && f.Injected == "":
		return opt, usage("--injection is the form of --injected, which is missing")
	}
	opt.Match.AllowReshape, opt.Strict, opt.Vacuous = f.Reshape, f.Strict, f.Vacuous
	if opt.Criteria, err = f.criteria(); err != nil {
		return opt, err
	}
	if opt.Match.PadMask, err = readPadMask(f.PadMask); err != nil {
		return opt, err
	}
	if f.Names != "" {
		m, err := fixture.LoadMatching(f.Names)
		if wrong := (*fixture.Error)(nil); errors.As(err, &wrong) {
			return opt, usage("--names: %v", err)
		} else if err != nil {
			return opt, fmt.Errorf("--names: %w", err)
		}
		opt.Match.Rules, opt.Match.Ignore, opt.Scope = m.MatchRules(), m.MatchIgnores(), m.Patterns()
	}
	for _, s := range f.Scope {
		p, err := glob.Compile(s)
		if err != nil {
			return opt, usage("--scope: %v", err)
		}
		opt.Scope = append(opt.Scope, p)
	}
	return opt, nil
}

// criteria judge in place of the defaults; nil if none were asked for.
func (f *inputFlags) criteria() (judge.CriteriaFunc, error) {
	within := f.Atol != nil || f.Rtol != nil
	if !within && !f.EqualNaN {
		return nil, nil
	}
	asked := compare.Criteria{}
	for c, limit := range map[*compare.Criterion]*float64{compare.Atol: f.Atol, compare.Rtol: f.Rtol} {
		asked[c] = 0
		if limit != nil {
			asked[c] = *limit
		}
	}
	if err := asked.Validate(); err != nil {
		return nil, usage("%v", err)
	}
	return func(_, _ string, d tensor.DType) (compare.Criteria, string) {
		c, source := maps.Clone(asked), "--atol, --rtol"
		if !within {
			c, source = compare.Default(d), "defaults, --equal-nan"
		}
		if f.EqualNaN {
			c[compare.EqualNaN] = 1
		}
		return c, source
	}, nil
}

// keeps refuses to write to one of the inputs.
func (f *inputFlags) keeps(out string) error {
	if out == "" || out == "-" {
		return nil
	}
	for _, in := range f.Files() {
		if same, err := sameFile(in, out); err == nil && same {
			return usage("%s is one of the files to compare", out)
		}
	}
	return nil
}

// open opens all dumps of the command line and pairs their cases.
func (f *inputFlags) open() (cases []judge.Case, closeAll func(), err error) {
	var opened []*dump.Run
	defer func() {
		if err != nil {
			dump.CloseAll(opened)
		}
	}()
	open := func(path string, o dump.Options) (runs []*dump.Run, err error) {
		if path != "" {
			runs, err = f.runs(path, o, opened)
			opened = append(opened, runs...)
		}
		return runs, err
	}
	if f.Golden == "" {
		return f.openAlone(open)
	}
	golden, err := open(f.Golden, dump.Options{})
	if err != nil {
		return nil, nil, err
	}
	for _, g := range golden {
		cases = append(cases, judge.Case{Name: cmp.Or(g.Info.Case, filepath.Base(filepath.Clean(f.Golden))), Golden: g})
	}
	for _, d := range []struct {
		flag, path string
		opt        dump.Options
		to         func(*judge.Case) **dump.Run
	}{
		{"--actual", f.Actual, dump.Options{}, func(k *judge.Case) **dump.Run { return &k.Actual }},
		{"--injected", f.Injected, dump.Options{Injection: f.Injection, Mode: dump.Injected},
			func(k *judge.Case) **dump.Run { return &k.Injected }},
		{"--golden64", f.Golden64, dump.Options{}, func(k *judge.Case) **dump.Run { return &k.Golden64 }},
		{"--noise", f.Noise, dump.Options{}, func(k *judge.Case) **dump.Run { return &k.Encoded }},
		{"--unquantised", f.Unquantised, dump.Options{}, func(k *judge.Case) **dump.Run { return &k.Unquantised }},
		{"--unrounded", f.Unrounded, dump.Options{}, func(k *judge.Case) **dump.Run { return &k.Unrounded }},
	} {
		runs, err := open(d.path, d.opt)
		if d.flag == "--actual" {
			cases = withoutImages(cases, runs)
		}
		if err == nil && d.path != "" {
			err = pairCases(cases, runs, d.flag, d.to)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := f.asked(cases); err != nil {
		return nil, nil, err
	}
	f.alike(cases)
	for _, k := range cases {
		if k.Actual.OtherPadding(k.Golden) && k.Actual.AlongPadding(k.Golden) {
			return nil, nil, fmt.Errorf("%s is padded: %w", f.Actual, dump.ErrUnjudged)
		}
	}
	golden = golden[:0]
	for _, k := range cases {
		golden = append(golden, k.Golden)
	}
	closePrograms, err := f.programs(golden, func(i int, p *program.Program) { cases[i].Program = p })
	if err != nil {
		return nil, nil, err
	}
	return cases, func() { closePrograms(); dump.CloseAll(opened) }, f.remarks(cases[0].Actual)
}

// openAlone opens the candidate's dump, and the program for each of its cases.
func (f *inputFlags) openAlone(open func(string, dump.Options) ([]*dump.Run, error)) (cases []judge.Case, closeAll func(), err error) {
	runs, err := open(f.Actual, dump.Options{})
	if err != nil {
		return nil, nil, err
	}
	closeAll = func() {
		for _, k := range cases {
			k.Program.Close()
		}
		dump.CloseAll(runs)
	}
	programs, err := f.programsOf(runs)
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	for i, r := range runs {
		cases = append(cases, judge.Case{Name: cmp.Or(r.Info.Case, filepath.Base(filepath.Clean(f.Actual))), Actual: r, Program: programs[i]})
	}
	if err := f.asked(cases); err != nil {
		closeAll()
		return nil, nil, err
	}
	return cases, closeAll, nil
}

// programsOf opens the program for each case of a candidate.
func (f *inputFlags) programsOf(runs []*dump.Run) (opened []*program.Program, err error) {
	for _, r := range runs {
		p, err := reference.OfCase(f.Program, r, len(runs) == 1)
		if err != nil {
			for _, p := range opened {
				p.Close()
			}
			return nil, fmt.Errorf("--program: %w", err)
		}
		opened = append(opened, p)
	}
	return opened, nil
}

// programs opens what the reference ran for each golden: the program beside it, or that of --program.
func (f *inputFlags) programs(golden []*dump.Run, to func(i int, p *program.Program)) (closeAll func(), err error) {
	var opened []*program.Program
	closeAll = func() {
		for _, p := range opened {
			p.Close()
		}
	}
	for i, g := range golden {
		var p *program.Program
		switch {
		case f.Program == "":
			p = reference.Beside(g)
		case len(golden) > 1:
			closeAll()
			return nil, usage("--program is of one case, and --golden has %d: lay each beside the run.json of its case, as %s", len(golden), dump.ProgramFile)
		default:
			if p, err = reference.Open(f.Program, g.Entries); err != nil {
				return nil, fmt.Errorf("--program: %w", err)
			}
		}
		if p != nil {
			opened = append(opened, p)
			to(i, p)
		}
	}
	return closeAll, nil
}

// runs opens a dump. Headerless files are read as the flags say, or else as those of the first dump.
func (f *inputFlags) runs(path string, o dump.Options, opened []*dump.Run) (runs []*dump.Run, err error) {
	if o.FP8, err = parseFP8(f.FP8); err != nil {
		return nil, err
	}
	switch {
	case f.Raw != "":
		spec, err := raw.Parse(f.Raw)
		if err != nil {
			return nil, usage("--raw: %v", err)
		}
		o.Raw = func(string, int64) (raw.Spec, error) { return spec, nil }
	case len(opened) > 0:
		o.Raw = rawLike(opened[0])
	}
	return dump.OpenCases(path, o)
}

// asked gives the candidate's runs the encoding of --encoding.
func (f *inputFlags) asked(cases []judge.Case) error {
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
	for _, k := range cases {
		said := &k.Actual.Info.Encoding
		if said.Compute != "" && said.Compute != d.String() {
			return usage("--encoding %s: the run in %s says that its encoding is %s", d, k.Actual.Path, *said)
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

// pairCases gives each case the run of its name. Two single runs belong together, whatever they are
// called.
func pairCases(cases []judge.Case, runs []*dump.Run, flag string, to func(*judge.Case) **dump.Run) error {
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
		if *to(k) == nil && flag == "--actual" {
			return fmt.Errorf("%s has no case %q, it has %s", flag, k.Name, dump.CaseNames(runs))
		}
	}
	return nil
}

// alike gives two files with one tensor each the same label: what they are called means nothing.
func (f *inputFlags) alike(cases []judge.Case) {
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

// remarks notes what the command line asks for and does not get.
func (f *inputFlags) remarks(actual *dump.Run) error {
	same, err := sameFile(f.Golden, f.Actual)
	if err != nil {
		return err
	}
	if same {
		actual.Notes = append(actual.Notes, "golden and actual are the same: this shows only that the dump can be read")
	}
	return nil
}

// evidence opens what the search for causes may use besides the dumps. A file that cannot be read
// is an error at once, not only when a run fails.
func (f *inputFlags) evidence() (give func() (checkpoint.Weights, checkpoint.Config, error),
	closeAll func(), err error) {
	var config checkpoint.Config
	if f.Config != "" {
		if config, err = checkpoint.ReadConfig(f.Config); err != nil {
			return nil, nil, fmt.Errorf("--config: %w", err)
		}
	}
	weights, err := checkpoint.Open(f.Weights...)
	if err != nil {
		return nil, nil, fmt.Errorf("--weights: %w", err)
	}
	give = func() (checkpoint.Weights, checkpoint.Config, error) { return weights.Tensors, config, nil }
	return give, func() { weights.Close() }, nil
}

// sameModel refuses weights that are of another model than the golden: a layer that puts out more or fewer numbers
// than the weight of its name has rows or columns.
func (f *inputFlags) sameModel(evidence func() (checkpoint.Weights, checkpoint.Config, error), golden *dump.Run) error {
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

func sameFile(a, b string) (bool, error) {
	sa, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	sb, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	return os.SameFile(sa, sb), nil
}

// readPadMask reads [[1,1,0],…]: true where there is a real token.
func readPadMask(path string) ([][]bool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return nil, fmt.Errorf("--pad-mask: %w", err)
	}
	var rows [][]int
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, usage("--pad-mask %s: want [[1,1,0],…], 0 or 1 per batch and token: %v", path, err)
	}
	mask := make([][]bool, len(rows))
	for i, r := range rows {
		if len(r) != len(rows[0]) {
			return nil, usage("--pad-mask %s: row %d has %d tokens, row 0 has %d", path, i, len(r), len(rows[0]))
		}
		for j, v := range r {
			if v != 0 && v != 1 {
				return nil, usage("--pad-mask %s: [%d][%d] is %d, want 0 or 1", path, i, j, v)
			}
			mask[i] = append(mask[i], v == 1)
		}
	}
	return mask, nil
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
			return best, fmt.Errorf("%w: no port of the golden's layer has %d bytes: say dtype and shape with --raw "+
				"DTYPE:SHAPE",
				dump.ErrUnknownShape, size)
		}
		return best, nil
	}
}
