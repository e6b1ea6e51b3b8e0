package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/whole"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// noiseUsage is the text of the flag --noise.
const noiseUsage = "the reference's `dump` in the candidate's encoding (parity run --engine torch --encoding bfloat16\n" +
	"--follow GOLDEN): what that costs the reference is the measure, in place of the default tolerances"

type compareFlags struct {
	golden, actual, injected, golden64, noise, encoding string
	onePass                                             string
	config, padMask                                     string
	diagnose                                            setting.Diagnose
	weights, scope                                      []string
	injection, raw, fp8, json                           string
	atol, rtol                                          float64
	reshape, equalNaN, verbose                          bool
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare --golden A --actual B",
		Short: "compare two dumps or two files; no fixture needed",
		Long: "compare judges every port that two dumps have in common and says which layer is the first to\n" +
			"diverge. A dump is a folder with files named <layer>-<port> and " + dump.Formats() + ",\n" +
			"with or without step folders and run.json, or one file. Without --atol or --rtol the defaults judge:\n" +
			"relative L2 of the tensor and of its worst row. A candidate whose run.json has passes ran along an\n" +
			"execution path (chunks, a batch, one token at a time): each row is judged by the golden's one pass.",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.positional(args); err != nil {
				return err
			}
			within := cmd.Flags().Changed("atol") || cmd.Flags().Changed("rtol")
			return f.run(cmd.Context(), within, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.golden, "golden", "", "the reference's `dump`: a folder or a file")
	fl.StringVar(&f.actual, "actual", "", "the candidate's `dump`")
	fl.StringVar(&f.injected, "injected", "", "the candidate's `dump` of a run on golden inputs")
	fl.StringVar(&f.golden64, "golden64", "", "the reference's `dump` in float64")
	fl.StringVar(&f.onePass, "one-pass", "", "the candidate's own `dump` of one pass, where --actual ran along an execution path")
	fl.StringVar(&f.encoding, "encoding", "", "`dtype` in which the candidate was asked to compute, where its run does not say it")
	fl.StringVar(&f.noise, "noise", "", noiseUsage)
	fl.StringArrayVar(&f.weights, "weights", nil,
		"the reference's weights: a safetensors `file`, its index.json, or a folder; may be repeated")
	fl.StringVar(&f.config, "config", "", "the model's config.json")
	fl.TextVar(&f.diagnose, "diagnose", setting.DiagnoseFull,
		"time for the search of causes when the comparison fails: `off`, fast or full")
	fl.StringVar(&f.padMask, "pad-mask", "", "JSON `file` with 0 or 1 per [batch][token]: padding rows are left out")
	fl.StringVar(&f.injection, "injection", "", "form of the injected run: nested or isolated (default: as recorded)")
	fl.StringVar(&f.raw, "raw", "", "dtype and shape of headerless files, as `f32:4x8` (default: those of the golden)")
	fl.StringVar(&f.fp8, "fp8", "", "`dtype` of 8-bit floats in .npy files, which do not say it: f8_e4m3, f8_e5m2, …")
	fl.Float64Var(&f.atol, "atol", 0, "absolute tolerance of |a − g| ≤ atol + rtol·|g|")
	fl.Float64Var(&f.rtol, "rtol", 0, "relative tolerance")
	fl.BoolVar(&f.equalNaN, "equal-nan", false, "NaN matches NaN")
	fl.BoolVar(&f.reshape, "allow-reshape", false,
		"compare ports of one layer that have equally many elements in another shape")
	fl.StringArrayVar(&f.scope, "scope", nil,
		"a pass needs only the layers that match this `pattern`, and what is in them; may be repeated")
	fl.StringVar(&f.json, "json", "", "write report.json to this `file` (- for standard output)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	return c
}

// positional lets "compare A B" stand for the two flags.
func (f *compareFlags) positional(args []string) error {
	for _, a := range args {
		switch {
		case f.golden == "":
			f.golden = a
		case f.actual == "":
			f.actual = a
		default:
			return usage("compare: %q is one dump too many", a)
		}
	}
	switch {
	case f.golden == "":
		return usage("compare: --golden is missing: the reference's dump")
	case f.actual == "":
		return usage("compare: --actual is missing: the candidate's dump")
	case f.injection != "" && f.injection != dump.Nested && f.injection != dump.Isolated:
		return usage("compare: --injection %s: want nested or isolated", f.injection)
	case f.injection != "" && f.injected == "":
		return usage("compare: --injection is the form of --injected, which is missing")
	}
	return nil
}

func (f *compareFlags) run(ctx context.Context, within bool, stdout, stderr io.Writer) error {
	r, err := f.compare(ctx, within, stderr)
	var e *exitError
	if errors.As(err, &e) && e.code == exitUsage {
		return err
	}
	if r == nil {
		r = &report.Report{Fixture: f.golden, Verdict: report.Error, Error: err.Error()}
	}
	return f.write(r, stdout, err)
}

// compare returns a report, even with an error if the dumps could be opened.
func (f *compareFlags) compare(ctx context.Context, within bool, stderr io.Writer) (*report.Report, error) {
	opt := judge.Options{Match: match.Options{AllowReshape: f.reshape}}
	if within || f.equalNaN {
		asked := compare.Criteria{compare.Atol: f.atol, compare.Rtol: f.rtol}
		if err := asked.Validate(); err != nil {
			return nil, usage("compare: %v", err)
		}
		opt.Criteria = func(_, _ string, d tensor.DType) (compare.Criteria, string) {
			c, source := maps.Clone(asked), "--atol, --rtol"
			if !within {
				c, source = compare.Default(d), "defaults, --equal-nan"
			}
			if f.equalNaN {
				c[compare.EqualNaN] = 1
			}
			return c, source
		}
	}
	if err := f.checkOutput(); err != nil {
		return nil, err
	}
	for _, s := range f.scope {
		p, err := glob.Compile(s)
		if err != nil {
			return nil, usage("--scope: %v", err)
		}
		opt.Scope = append(opt.Scope, p)
	}
	var err error
	if opt.Match.PadMask, err = readPadMask(f.padMask); err != nil {
		return nil, err
	}
	runs, closeAll, err := f.runs(true)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	evidence, closeEvidence, err := f.evidence()
	if err != nil {
		return nil, err
	}
	defer closeEvidence()
	opt.Diagnosis = judge.Diagnosis{Mode: f.diagnose, Evidence: evidence}
	bar := newProgress(stderr)
	opt.Progress = bar.set
	var r *report.Report
	if runs.alongPath() {
		r, err = f.alongPaths(ctx, runs, opt)
	} else {
		r, err = f.onePasses(ctx, runs, opt)
	}
	bar.done()
	if scope := (*judge.ScopeError)(nil); errors.As(err, &scope) {
		return nil, usage("compare: %v", err)
	}
	return r, err
}

// onePasses judges runs of one pass.
func (f *compareFlags) onePasses(ctx context.Context, runs *compared, opt judge.Options) (*report.Report, error) {
	if f.onePass != "" {
		return nil, usage("compare: --one-pass stands beside a run along an execution path: run.json of --actual has no passes")
	}
	cases, err := f.cases(runs)
	if err != nil {
		return nil, err
	}
	c, err := judge.Compare(ctx, cases, opt)
	if err != nil {
		return nil, err
	}
	return c.Report(f.golden, true), nil
}

// alongPaths judges runs along execution paths.
func (f *compareFlags) alongPaths(ctx context.Context, runs *compared, opt judge.Options) (*report.Report, error) {
	switch {
	case f.injected != "":
		return nil, usage("compare: --injected is a run of one pass: it cannot stand beside a run along an execution path")
	case f.padMask != "":
		return nil, usage("compare: --pad-mask: say it in run.json of the run that has padding, pad_mask and pad_masks")
	}
	var cases []judge.Case
	for _, r := range runs.of["--actual"] {
		cases = append(cases, judge.Case{Actual: r})
	}
	if err := f.asked(cases); err != nil {
		return nil, err
	}
	if err := f.remarks(cases[0].Actual); err != nil {
		return nil, err
	}
	p, err := judge.ComparePaths(ctx, judge.PathRuns{Golden: runs.of["--golden"], Actual: runs.of["--actual"],
		OnePass: runs.of["--one-pass"], Golden64: runs.of["--golden64"], Encoded: runs.of["--noise"]}, opt)
	if err != nil {
		return nil, err
	}
	return p.Report(f.golden), nil
}

// checkOutput refuses to write the report over a dump.
func (f *compareFlags) checkOutput() error {
	if f.json == "" || f.json == "-" {
		return nil
	}
	for _, in := range append([]string{f.golden, f.actual, f.injected, f.golden64, f.noise, f.onePass, f.config, f.padMask}, f.weights...) {
		if in == "" {
			continue
		}
		if same, err := sameFile(in, f.json); err == nil && same {
			return usage("compare: --json %s is one of the files to compare", f.json)
		}
	}
	return nil
}

// compared has the dumps of the command line, by flag.
type compared struct{ of map[string][]*dump.Run }

// alongPath reports whether the rows of a run are to be found by its passes.
func (c *compared) alongPath() bool {
	for _, flag := range []string{"--golden", "--actual", "--one-pass"} {
		if slices.ContainsFunc(c.of[flag], func(r *dump.Run) bool { return r.Info.AlongPath() }) {
			return true
		}
	}
	return false
}

// open opens all dumps of the command line, which are of one pass, and pairs their cases.
func (f *compareFlags) open() (cases []judge.Case, closeAll func(), err error) {
	runs, closeAll, err := f.runs(false)
	if err != nil {
		return nil, nil, err
	}
	if cases, err = f.cases(runs); err != nil {
		closeAll()
		return nil, nil, err
	}
	return cases, closeAll, nil
}

// cases pairs the cases of all dumps.
func (f *compareFlags) cases(c *compared) (cases []judge.Case, err error) {
	for _, g := range c.of["--golden"] {
		cases = append(cases, judge.Case{Name: cmp.Or(g.Info.Case, filepath.Base(filepath.Clean(f.golden))), Golden: g})
	}
	for _, d := range []struct {
		flag string
		to   func(*judge.Case) **dump.Run
	}{
		{"--actual", func(k *judge.Case) **dump.Run { return &k.Actual }},
		{"--injected", func(k *judge.Case) **dump.Run { return &k.Injected }},
		{"--golden64", func(k *judge.Case) **dump.Run { return &k.Golden64 }},
		{"--noise", func(k *judge.Case) **dump.Run { return &k.Encoded }},
	} {
		if runs := c.of[d.flag]; runs != nil {
			if err := pairCases(cases, runs, d.flag, d.to); err != nil {
				return nil, err
			}
		}
	}
	if err := f.asked(cases); err != nil {
		return nil, err
	}
	f.alike(cases)
	return cases, f.remarks(cases[0].Actual)
}

// runs opens all dumps of the command line, also those along execution paths if these are judged.
func (f *compareFlags) runs(alongPaths bool) (runs *compared, closeAll func(), err error) {
	var opened []*dump.Run
	defer func() {
		if err != nil {
			dump.CloseAll(opened)
		}
	}()
	var spec raw.Spec
	if f.raw != "" {
		if spec, err = raw.Parse(f.raw); err != nil {
			return nil, nil, usage("--raw: %v", err)
		}
	}
	fp8, err := parseFP8(f.fp8)
	if err != nil {
		return nil, nil, err
	}
	runs = &compared{of: map[string][]*dump.Run{}}
	for _, d := range []struct{ flag, path string }{{"--golden", f.golden}, {"--actual", f.actual}, {"--injected", f.injected},
		{"--golden64", f.golden64}, {"--noise", f.noise}, {"--one-pass", f.onePass}} {
		if d.path == "" {
			continue
		}
		o := dump.Options{FP8: fp8, Unjudged: alongPaths}
		if d.flag == "--injected" {
			o.Injection = f.injection
		}
		switch {
		case f.raw != "":
			o.Raw = func(string, int64) (raw.Spec, error) { return spec, nil }
		case len(opened) > 0:
			o.Raw = rawLike(opened[0])
		}
		of, err := dump.OpenCases(d.path, o)
		opened = append(opened, of...)
		if err != nil {
			return nil, nil, err
		}
		runs.of[d.flag] = of
	}
	return runs, func() { dump.CloseAll(opened) }, nil
}

// asked gives the candidate's runs the encoding of --encoding.
func (f *compareFlags) asked(cases []judge.Case) error {
	if f.encoding == "" {
		return nil
	}
	d, err := tensor.ParseDType(f.encoding)
	if err == nil && !d.IsFloat() {
		err = fmt.Errorf("%s is no float", d)
	}
	if err != nil {
		return usage("compare: --encoding: %v", err)
	}
	for _, k := range cases {
		said := &k.Actual.Info.Encoding
		if said.Compute != "" && said.Compute != d.String() {
			return usage("compare: --encoding %s: the run in %s says that its encoding is %s", d, k.Actual.Path, *said)
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
func (f *compareFlags) alike(cases []judge.Case) {
	for _, path := range []string{f.golden, f.actual} {
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
func (f *compareFlags) remarks(actual *dump.Run) error {
	same, err := sameFile(f.golden, f.actual)
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
func (f *compareFlags) evidence() (give func() (checkpoint.Weights, checkpoint.Config, error),
	closeAll func(), err error) {
	var config checkpoint.Config
	if f.config != "" {
		if config, err = checkpoint.ReadConfig(f.config); err != nil {
			return nil, nil, fmt.Errorf("--config: %w", err)
		}
	}
	weights, err := checkpoint.Open(f.weights...)
	if err != nil {
		return nil, nil, fmt.Errorf("--weights: %w", err)
	}
	give = func() (checkpoint.Weights, checkpoint.Config, error) { return weights.Tensors, config, nil }
	return give, func() { weights.Close() }, nil
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

// write prints the report and returns the exit code.
func (f *compareFlags) write(r *report.Report, stdout io.Writer, cause error) error {
	text := stdout
	if f.json == "-" {
		text = io.Discard
		if err := report.Write(stdout, r); err != nil {
			return err
		}
	} else if f.json != "" {
		if err := writeFile(f.json, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
			return err
		}
	}
	if cause != nil {
		return &exitError{exitInfra, cause}
	}
	if err := report.Text(text, r, textOptions(stdout, f.verbose)); err != nil {
		return err
	}
	return exitOf(r)
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

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	var named *fs.PathError // it says which file
	if err != nil && !errors.As(err, &named) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(err, file.Close())
}

// replaceFile writes a file that is there already, or leaves it as it is.
func replaceFile(path string, data []byte) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return whole.File(path, st.Mode().Perm(), func(w io.Writer) error { _, err := w.Write(data); return err })
}
