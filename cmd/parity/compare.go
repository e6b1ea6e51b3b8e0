package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/setting"
)

type compareFlags struct {
	inputFlags
	fixture fixtureFlags
	tree    tree
	json    string
	verbose bool
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare GOLDEN CANDIDATE | compare FIXTURE",
		Short: "compare two dumps or two files, no fixture needed; or judge a fixture's run",
		Long: "compare judges every port that two dumps have in common and says which layer is the first to\n" +
			"diverge. A dump is a folder with files named <layer>-<port> and " + dump.Formats() + ",\n" +
			"with or without step folders and run.json, or one file. Without --within the defaults judge:\n" +
			"relative L2 of the tensor and of its worst row. run.json decides what is compared:\n\n" +
			"  passes      of the candidate: it ran along an execution path (chunks, a batch, one token at a time): each row is\n" +
			"              judged by the golden's one pass\n" +
			"  generation  of the golden: the candidate was forced along the reference's greedy text: its logits are judged token by\n" +
			"              token, IDENTICAL, a TIE within the noise of the encoding, or DIVERGED at token k, with the first\n" +
			"              layer of the forward pass where it begins. So are the JSON of MAX's logit tools and responses\n" +
			"              of an OpenAI-compatible server with log-probabilities. Exit code 3: no logits, rows missing,\n" +
			"              another text, or a golden so flat that noise decides more than 20 % of its tokens. With flags\n" +
			"              about tensors these are judged instead\n\n" +
			"Without a golden, --program and --weights judge: parity golden program MODEL --for B records the program.\n\n" +
			"Of a FIXTURE, a folder with fixture.yaml, the recorded run is judged, or with --run one that is made now.\n\n" +
			"With -o a folder is written:\n\n" +
			"  DIR/{without_injection,with_injection}/layer_verification_report_NAME_ENCODING.txt\n" +
			"  DIR/{without_injection,with_injection}/{mse_plot.png,module_names_max.txt,module_names_torch.txt}\n" +
			"  DIR/{without_injection,with_injection}/{max_layers,torch_layers}     with --save-layers\n" +
			"  DIR/{report.json,report.html,summary.txt}",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.choose(args, cmd.Flags().Changed); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(c)
	return c
}

// add adds all flags.
func (f *compareFlags) add(c *cobra.Command) {
	fl := c.Flags()
	f.addPair(c)
	f.addNames(c, "a pass needs only the layers that match this `pattern`, and what is in them; may be repeated")
	f.addFurther(c)
	f.addModel(c)
	fl.StringVar(&f.Program, "program", "",
		"what the reference ran, a `program.json` (default: the one beside the golden's run.json); without --golden\n"+
			"it judges alone, with --weights: each tensor is held against what the program makes of those before it")
	fl.StringVar(&f.Layers, "layers", "", "without --golden: only these blocks, as `0,1,last`")
	f.addFormat(c)
	addWithin(c, &f.Within,
		"judge by these `limits`, keys of fixture.yaml, in place of the defaults: rel_l2=1e-4,row_rel_l2=1e-3",
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
	f.fixture.add(c)
	fl.StringVarP(&f.tree.dir, "output", "o", "", "write reports, plots and names of layers to this `folder`")
	fl.StringVar(&f.tree.dir, "export", "", "--output `folder`")
	fl.BoolVar(&f.tree.layers, "save-layers", false, "with -o: the tensors of both sides, too")
	fl.BoolVar(&f.tree.force, "force", false, "with -o: write into a folder that has other files")
	fl.StringVar(&f.json, "json", "", "write report.json to this `file` (- for standard output)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	hide(fl, "export", "injection")
}

// choose says what is compared, and where the folder of -o is.
func (f *compareFlags) choose(args []string, changed func(string) bool) error {
	alone := len(args) == 1 && f.Golden+f.Actual+f.Program == ""
	live := slices.IndexFunc(liveFlags, changed)
	var err error
	switch {
	case alone && (f.fixture.verify || exists(filepath.Join(args[0], fixture.FileName))):
		err = f.fixture.choose(args[0], f.Inputs, changed)
	case live >= 0:
		err = usage("compare: --%s is for fixtures", liveFlags[live])
	default:
		err = f.positional("compare", args)
	}
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(cmp.Or(f.fixture.dir, f.Actual))
	if err != nil {
		return err
	}
	f.tree.name = filepath.Base(abs)
	if f.fixture.verify && f.tree.dir == "" {
		f.tree.dir = "verification_" + plain(f.tree.name)
	}
	if f.tree.dir == "" && (f.tree.layers || f.tree.force) {
		return usage("compare: --save-layers and --force go with -o DIR")
	}
	return nil
}

func (f *compareFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := errors.Join(f.refuseOverwrite(f.json), f.tree.check()); err != nil {
		return err
	}
	made, err := f.made()
	if err != nil {
		return err
	}
	if f.fixture.dir != "" {
		made = nil
	}
	var r *report.Report
	wrong := f.judge(ctx, stderr, cmp.Or(f.Golden, f.Program), func(found *report.Report, cases []judge.Case) error {
		r = found
		r.Made = made
		return f.tree.write(r, cases)
	})
	if wrong != nil && ctx.Err() != nil {
		wrong = context.Cause(ctx)
	}
	if codeOf(wrong) == exitUsage {
		return wrong
	}
	if r == nil { // the results of an earlier run must not look like those of this one
		r = failed(cmp.Or(f.Golden, f.Program, f.fixture.dir), wrong)
		r.Made = made
		wrong = errors.Join(wrong, f.tree.write(r, nil))
	}
	return f.write(r, stdout, wrong)
}

// handOver takes a report while the tensors of its cases can be read.
type handOver func(r *report.Report, cases []judge.Case) error

// judge judges what is given.
func (f *compareFlags) judge(ctx context.Context, stderr io.Writer, name string, done handOver) error {
	if f.fixture.dir != "" {
		return f.fixture.compare(ctx, stderr, f.diagnose, done)
	}
	return f.inputFlags.judge(ctx, stderr, name, done)
}

// judge judges two dumps: their tokens, or their tensors, along execution paths where the candidate ran so.
func (f *inputFlags) judge(ctx context.Context, stderr io.Writer, name string, done handOver) error {
	tokens, err := f.generates()
	if err != nil {
		return err
	}
	var r *report.Report
	switch {
	case tokens:
		r, err = f.compareTokens(ctx, name)
	case f.OnePass != "":
		r, err = f.comparePaths(ctx, stderr, name)
	default:
		err = f.compare(ctx, stderr, func(c *judge.Comparison, _ search.Evidence) error {
			return done(c.Report(name, true), c.Cases)
		})
		if errors.Is(err, dump.ErrUnjudged) {
			r, err = f.comparePaths(ctx, stderr, name)
		}
	}
	if r != nil {
		err = errors.Join(err, done(r, nil))
	}
	return err
}

// failed is the report of a comparison that could not be made.
func failed(fixture string, err error) *report.Report {
	r := &report.Report{Fixture: fixture, Verdict: report.Error, Error: err.Error()}
	var none *judge.NothingError
	if errors.As(err, &none) {
		r.Unmatched = none.Unmatched
	}
	return r
}

// write prints the report and returns the exit code. cause is why there is none that judges something.
func (f *compareFlags) write(r *report.Report, stdout io.Writer, cause error) error {
	if err := writeOutput(f.json, stdout, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
		return err
	}
	if cause != nil {
		return &exitError{exitInfra, cause}
	}
	text, file := stdout, f.json
	switch {
	case f.json == "-":
		text, file = io.Discard, ""
	case f.tree.dir != "":
		file = filepath.Join(f.tree.dir, "report.json")
	}
	if err := report.Text(text, r, textOptions(stdout, f.verbose, file)); err != nil {
		return err
	}
	if f.tree.dir != "" {
		fmt.Fprintf(text, "\nwritten: %s, report.html, report.json\n",
			filepath.ToSlash(filepath.Join(f.tree.dir, "summary.txt")))
	}
	return exitOf(r)
}
