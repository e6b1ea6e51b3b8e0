package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
)

type compareFlags struct {
	inputFlags
	resultFlags
	fixture  string      // its folder; empty where dumps are compared
	now      setting.Run // which run of the fixture
	mode     setting.Mode
	observer bool
	edits    []string
	out      tree
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := command("compare", cobra.MaximumNArgs(2), f.run)
	c.PreRunE = f.choose
	f.add(c)
	return c
}

func (f *compareFlags) add(c *cobra.Command) {
	fl := c.Flags()
	f.addPair(c)
	f.addNames(c)
	f.addAssume(c)
	roles := keys{}
	for role, to := range f.Also() {
		roles[role] = once(to)
	}
	addKeys(c, "also", "a further dump, as `ROLE=DUMP`; may be repeated:\n"+
		"injected     the candidate's run on golden inputs\n"+
		"golden64     the reference's in float64\n"+
		"noise        the reference's in the candidate's encoding: what that costs it is the measure, in place of the defaults\n"+
		"one-pass     the candidate's own run of one pass, where --actual ran along an execution path\n"+
		"unquantised  where --golden ran on dequantised weights: the reference's on the weights as they were, to\n"+
		"             say what quantisation costs beside what the candidate adds\n"+
		"unrounded    where --golden rounds the inputs of products, too: the reference's without that", roles)
	fl.StringVar(&f.Injection, "injection", "", "form of the injected run: nested or isolated (default: as recorded)")
	fl.Lookup("injection").Hidden = true // of dumps without run.json
	fl.StringArrayVar(&f.Weights, "weights", nil,
		"the reference's weights: a safetensors `file`, its index.json, a .gguf or .pt file, or a folder; may be repeated")
	fl.StringVar(&f.Config, "config", "", "the model's config.json `file`")
	fl.StringArrayVar(&f.Scope, "scope", nil,
		"a pass needs only the layers that match this `pattern`, and what is in them; may be repeated")
	fl.StringVar(&f.Program, "program", "",
		"what the reference ran, a `program.json` (default: the one beside the golden's run.json); without a golden\n"+
			"it judges alone, with --weights: each tensor in --scope is held against what the program makes of those before it")
	addWithin(c, &f.Within, "judge by these `limits`, keys of fixture.yaml, in place of the defaults: rel_l2=1e-4,row_rel_l2=1e-3",
		compare.Atol.Key, compare.Rtol.Key, compare.EqualNaN.Key)
	fl.BoolVar(&f.Vacuous, "allow-vacuous", false,
		"let limits be so wide that zeros, other rows or the next layer's tensor would pass, too")
	fl.BoolVar(&f.Strict, "strict", false,
		"with a program: an error that a layer makes by itself fails within the tolerances, too")
	fl.BoolVar(&f.Reshape, "allow-reshape", false,
		"compare ports of one layer that have equally many elements in another shape")
	fl.Func("tokens", "judge the first `n` tokens of a generation, 0 for all", func(s string) error {
		n, err := strconv.Atoi(s)
		f.Tokens = &n
		return err
	})
	f.diagnose = setting.DiagnoseFull
	fl.Var(setting.Flag(&f.diagnose), "diagnose",
		"time for the search of causes when the comparison fails: `off`, fast or full")
	f.now = setting.RunReplay
	fl.Var(setting.Flag(&f.now), "run", "of a fixture: judge the recorded run, `replay`, or run the candidate now, cpu or gpu")
	f.mode = setting.ModeCan
	fl.Var(setting.Flag(&f.mode), "mode", "with --run: `both`, the run as it is and one on golden inputs, or standard (default: both where the engine can)")
	fl.Lookup("mode").DefValue = ""
	fl.BoolVar(&f.observer, "observer", false,
		"with --run: run the engines once more without hooks: do these change what the model returns?")
	fl.StringArrayVar(&f.edits, "edit", nil, "an `edit` of the reference's program, or a layer; may be repeated")
	fl.StringVarP(&f.out.dir, "output", "o", "", "write reports, plots and names of layers to this `folder`")
	f.resultFlags.add(c, reportName, "list every port")
	for _, other := range []string{"json", "output", "verbose", "diagnose", "tokens", "run"} {
		c.MarkFlagsMutuallyExclusive("edit", other)
	}
}

// choose says what is compared. It refuses inputs that a fixture has itself, and flags that would have no effect.
func (f *compareFlags) choose(cmd *cobra.Command, args []string) error {
	changed := cmd.Flags().Changed
	if len(args) == 1 && f.Golden+f.Actual == "" && isFixture(args[0]) {
		f.fixture = args[0]
	}
	given := f.Args()
	switch {
	case f.fixture == "" && (changed("run") || changed("mode") || f.observer):
		return usage("compare: --run, --mode and --observer are for a fixture: a folder with %s", fixture.FileName)
	case f.fixture == "":
		return f.positional("compare", args)
	case len(given) > 0:
		return usage("compare: %s is for dumps, a fixture has its own: names, ignore, scope and tolerances in %s", given[0],
			filepath.ToSlash(filepath.Join(f.fixture, fixture.FileName)))
	case f.edits != nil:
		return usage("compare: --edit is for dumps: give the fixture's runs, GOLDEN CANDIDATE")
	case (f.observer || changed("mode")) && f.now == setting.RunReplay:
		return usage("compare: --mode and --observer are for a fixture that runs now: --run cpu")
	}
	return nil
}

func (f *compareFlags) run(cmd *cobra.Command, _ []string) error {
	if f.edits != nil {
		return f.edit(cmd)
	}
	if err := cmp.Or(f.refuseOverwrite(f.json), f.out.check()); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var r *report.Report
	var cases []judge.Case
	name, ctx := cmp.Or(f.Golden, f.Program, f.fixture), cmd.Context()
	if f.fixture != "" {
		r, cases, err = f.judgeFixture(ctx)
	} else {
		r, cases, err = f.judge(ctx, cmd.ErrOrStderr(), name)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if codeOf(err) == exitUsage {
		return err
	}
	if r == nil { // the results of an earlier run must not look like those of this one
		r = failed(name, err)
	}
	if f.fixture == "" {
		r.Made = &report.Made{Command: "compare", Dir: dir, Inputs: f.Inputs}
	}
	err = errors.Join(err, f.out.write(r, cmp.Or(f.fixture, f.Actual), cases))
	return f.resultFlags.write(cmd.OutOrStdout(), r, f.out.dir, err)
}

func (f *compareFlags) judgeFixture(ctx context.Context) (r *report.Report, cases []judge.Case, err error) {
	cfg := session.Config{Fixtures: []string{f.fixture}, Run: f.now, Mode: f.mode, Observer: f.observer,
		Diagnose: f.diagnose, Context: ctx}
	err = inSession(cfg, func(_ *session.Session, fx *session.Fixture) error {
		if r, err = fx.Report(); err != nil {
			return err
		}
		c, err := fx.Comparison()
		cases = c.Cases
		return err
	})
	return r, cases, err
}

func failed(name string, err error) *report.Report {
	r := &report.Report{Fixture: name, Verdict: report.Error, Error: err.Error()}
	var none *judge.NothingError
	if errors.As(err, &none) {
		r.Unmatched = none.Unmatched
	}
	return r
}

// resultFlags say where a verdict goes.
type resultFlags struct {
	json    string
	verbose bool
}

func (f *resultFlags) add(c *cobra.Command, json, verbose string) {
	addJSON(c, &f.json, json)
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, verbose)
}

// write prints a report, and writes it to --json. dir has it, too; "" for none. cause: why it judges nothing.
func (f *resultFlags) write(stdout io.Writer, r *report.Report, dir string, cause error) error {
	if err := writeOutput(f.json, stdout, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
		return err
	}
	if cause != nil {
		return &exitError{exitInfra, cause}
	}
	if f.json == "-" {
		return exitOf(r)
	}
	file := f.json
	if dir != "" {
		file = filepath.Join(dir, reportName)
	}
	if err := report.Text(stdout, r, textOptions(stdout, f.verbose, file)); err != nil {
		return err
	}
	if dir != "" {
		fmt.Fprintf(stdout, "\nwritten: %s, report.html, report.json\n", filepath.ToSlash(filepath.Join(dir, "summary.txt")))
	}
	return exitOf(r)
}

func exitOf(r *report.Report) error {
	switch r.Verdict {
	case report.Pass:
		return nil
	case report.Fail:
		return errMismatch
	}
	return &exitError{exitInfra, errors.New(report.Headline(r))}
}

// compared compares two dumps without a search for causes. Their tensors can be read until they are closed.
func (f *inputFlags) compared(cmd *cobra.Command) (in *inputs, c *judge.Comparison, err error) {
	f.diagnose = setting.DiagnoseOff
	if in, err = f.open(cmd.ErrOrStderr()); err == nil {
		c, err = in.compare(cmd.Context())
	}
	return in, c, err
}

// edit says how far down the candidate is right by the program with the edits. A layer alone lists its operators.
func (f *compareFlags) edit(cmd *cobra.Command) error {
	in, c, err := f.compared(cmd)
	defer in.close()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	var edits []string
	for _, e := range f.edits {
		if strings.Contains(e, ":") {
			edits = append(edits, e)
			continue
		}
		lines, err := c.Operators(e)
		if err != nil {
			return usage("compare: --edit %q: %v: --edit '*' lists all", e, err)
		}
		fmt.Fprintln(w, sanitize.Text(strings.Join(lines, "\n")))
	}
	if edits == nil {
		return nil
	}
	tried, err := c.Try(cmd.Context(), edits)
	if err != nil {
		return usage("compare: --edit: %v", err)
	}
	for _, t := range tried {
		if t.Case != "" {
			fmt.Fprintf(w, "case %s\n", sanitize.Text(t.Case))
		}
		fmt.Fprintf(w, "  as recorded: %s\n", sanitize.Text(t.Before.String()))
		for _, e := range t.Edits {
			fmt.Fprintf(w, "  with %s\n", sanitize.Text(e))
		}
		fmt.Fprintf(w, "  then: %s\n", sanitize.Text(t.With.String()))
		if !t.Further() {
			err = errMismatch
		}
	}
	return err
}

// tree is the folder that parity compare -o writes. It replaces and removes nothing but its own.
type tree struct{ dir string } // empty: none is written

// marker lies in a folder that parity compare wrote: who writes it holds its lock.
const marker = ".goparity-verification"

// fileWidth is how wide the lines of its files are.
const fileWidth = 120

var entries = []string{"without_injection", "with_injection", reportName, "report.html", "summary.txt"}

// check refuses a folder with other files.
func (t tree) check() error {
	if t.dir == "" {
		return nil
	}
	found, err := os.ReadDir(t.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(found) > 0 && !exists(filepath.Join(t.dir, marker)) {
		return usage("compare: %s is not empty, and parity compare did not write it: give another folder", t.dir)
	}
	return nil
}

// write writes everything to a folder inside the tree first, and puts it in the place of what an earlier run wrote when
// it is complete. path is what was judged. cases is empty if nothing could be compared.
func (t tree) write(r *report.Report, path string, cases []judge.Case) (err error) {
	if t.dir == "" {
		return nil
	}
	unlock, err := supervise.LockFile(context.Background(), filepath.Join(t.dir, marker), nil)
	if err != nil {
		return err
	}
	defer unlock()
	tmp, err := os.MkdirTemp(t.dir, ".new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	for file, write := range t.files(r, path, cases) {
		file = filepath.Join(tmp, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), writeFile(file, write)); err != nil {
			return err
		}
	}
	for _, name := range entries {
		from, to := filepath.Join(tmp, name), filepath.Join(t.dir, name)
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (t tree) files(r *report.Report, path string, cases []judge.Case) map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{
		reportName:    func(w io.Writer) error { return report.Write(w, r) },
		"report.html": func(w io.Writer) error { return export.HTML(w, r, filepath.Join(t.dir, reportName)) },
		"summary.txt": func(w io.Writer) error { return r.Modes().Text(w, report.TextOptions{Width: fileWidth}) },
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	name := fmt.Sprintf("layer_verification_report_%s_%s.txt", plain(filepath.Base(path)), plain(encoding(r)))
	for i, mode := range []report.Mode{report.Standard, report.Injected} {
		folder := entries[i]
		var golden, actual []*dump.Run
		for _, k := range cases {
			if of := []*dump.Run{k.Actual, k.Injected}[i]; of != nil {
				golden, actual = append(golden, k.Golden), append(actual, of)
			}
		}
		if actual == nil {
			continue
		}
		files[folder+"/"+name] = func(w io.Writer) error { return r.Verification(mode).Text(w, report.TextOptions{Width: fileWidth}) }
		files[folder+"/mse_plot.png"] = func(w io.Writer) error { return export.PNG(w, r, mode) }
		files[folder+"/module_names_max.txt"] = func(w io.Writer) error { return writeLayers(w, actual) }
		files[folder+"/module_names_torch.txt"] = func(w io.Writer) error { return writeLayers(w, golden) }
	}
	return files
}

func writeLayers(w io.Writer, runs []*dump.Run) (err error) {
	seen := map[string]bool{}
	for _, r := range runs {
		for _, e := range r.Entries {
			if !seen[e.Layer] && err == nil {
				seen[e.Layer] = true
				_, err = fmt.Fprintln(w, report.Clean(e.Layer))
			}
		}
	}
	return err
}

func encoding(r *report.Report) string {
	if e := r.Source.Actual.Encoding; e != "" {
		return e
	}
	for _, l := range r.Layers { // of a dump that does not say
		if !l.IsInput() && l.Actual != nil {
			return l.Actual.DType
		}
	}
	return "unknown"
}

var notPlain = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// plain makes a name fit for a file's.
func plain(s string) string {
	s = notPlain.ReplaceAllString(s, "_")
	return strings.TrimLeft(s[:min(len(s), 80)], ".")
}

type serveFlags struct {
	session.Serving
	resultFlags
}

func newServe() *cobra.Command {
	f := serveFlags{Serving: session.Serving{Live: true}}
	c := command("serve", cobra.ExactArgs(1), f.run)
	fl := c.Flags()
	fl.StringVar(&f.URL, "url", "", "`address` of a server that runs, http://HOST:PORT")
	fl.DurationVar(&f.Timeout, "timeout", serving.DefaultTimeout, "how long an answer may take")
	fl.IntVar(&f.Parallel, "parallel", serving.DefaultParallel, "how many requests are on their way at once")
	fl.IntVar(&f.Draws, "draws", 0, "how many tokens are drawn for each setting of sampling (default: serve.draws, or none)")
	fl.DurationVar(&f.Start, "start-timeout", serving.DefaultStart, "how long a server that is started may take until it is ready")
	fl.StringVar(&f.Device, "device", engine.CPU, "where the server computes, for the fixture's encodings: cpu or gpu")
	fl.StringVar(&f.Encoding, "encoding", "", "`dtype` in which the server computes (default: by the fixture's encodings)")
	f.add(c, reportName, "list every request, and what was asked to find a cause")
	return c
}

func (f *serveFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.Timeout <= 0 || f.Start <= 0:
		return usage("serve: --timeout %s, --start-timeout %s: want a time, 30s", f.Timeout, f.Start)
	case f.Parallel < 1:
		return usage("serve: --parallel %d: want a number from 1", f.Parallel)
	case f.Draws < 0 || f.Draws > 0 && f.Draws < fixture.MinDraws:
		return usage("serve: --draws %d: want %d or more, 0 for none", f.Draws, fixture.MinDraws)
	}
	if err := device(f.Device); err != nil {
		return err
	}
	cfg := session.Config{Fixtures: args, Context: cmd.Context()}
	return inSession(cfg, func(_ *session.Session, fx *session.Fixture) error {
		switch _, err := fx.Serve(f.Serving); {
		case codeOf(err) == exitUsage:
			return err
		case err != nil:
			return f.write(cmd.OutOrStdout(), failed(fx.Name(), err), "", err)
		}
		return f.write(cmd.OutOrStdout(), fx.ServeReport(), "", nil)
	})
}
