package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
)

type verifyFlags struct {
	inputFlags
	export                                            string
	run                                               setting.Run
	mode                                              setting.Mode
	replay, goldens, layers, force, observer, verbose bool
	timeout                                           time.Duration
}

func newVerify() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify FIXTURE | verify --golden A --actual B [--injected C]",
		Short: "compare all layers in both modes, and write reports, plots and tensors to a folder",
		Long: "verify runs the reference and the candidate of a fixture, the candidate once as it is and once with\n" +
			"the golden inputs given to every layer, and writes\n\n" +
			"  EXPORT/{without_injection,with_injection}/layer_verification_report_NAME_ENCODING.txt\n" +
			"  EXPORT/{without_injection,with_injection}/{mse_plot.png,module_names_max.txt,module_names_torch.txt}\n" +
			"  EXPORT/{without_injection,with_injection}/{max_layers,torch_layers}     with --save-layers\n" +
			"  EXPORT/{report.json,report.html,summary.txt}\n\n" +
			"With --replay the recorded runs and goldens of the fixture are verified, and with --golden and\n" +
			"--actual two dumps, which need no fixture.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.verify(cmd.Context(), args, cmd.Flags().Changed, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.TextVar(&f.run, "run", setting.RunCPU, "where the candidate runs: `cpu` or gpu")
	fl.BoolVar(&f.replay, "replay", false, "verify the recorded run, start no engine")
	fl.BoolVar(&f.goldens, "goldens", false, "take the fixture's goldens, do not run the reference")
	fl.TextVar(&f.mode, "mode", setting.ModeBoth, "`both`, or standard: no injected run")
	fl.StringVarP(&f.export, "export", "o", "", "`folder` of the results (default verification_NAME)")
	fl.BoolVar(&f.observer, "observer", false,
		"run the engines once more without hooks: do these change what the model returns?")
	fl.BoolVar(&f.layers, "save-layers", false, "write the tensors of both sides too")
	fl.BoolVar(&f.force, "force", false, "write into a folder that has other files")
	fl.DurationVar(&f.timeout, "timeout", 0, "stop the engines after this time (0: never)")
	f.both(c, scopeUsage)
	f.more(c)
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	return c
}

// check finds flags that contradict each other.
func (f *verifyFlags) check(args []string, changed func(string) bool) error {
	dumps := f.Golden != "" || f.Actual != "" || f.Injected != "" || f.Golden64 != "" || f.Noise != "" ||
		f.Unquantised != "" || f.Unrounded != ""
	switch {
	case dumps && len(args) > 0:
		return usage("verify: a fixture or dumps, not both")
	case dumps && (f.Golden == "" || f.Actual == ""):
		return usage("verify: --golden and --actual belong together")
	case !dumps && len(args) == 0:
		return usage("verify: name a fixture, or dumps with --golden and --actual")
	case !dumps && f.PadMask != "":
		return usage("verify: --pad-mask is for dumps, a fixture knows its own")
	case !dumps && (f.Names != "" || len(f.Scope) > 0):
		return usage("verify: --names and --scope are for dumps, a fixture has its own: names, ignore and scope in %s",
			filepath.ToSlash(filepath.Join(args[0], fixture.FileName)))
	case f.run != setting.RunCPU && f.run != setting.RunGPU:
		return usage("verify: --run %s: want cpu or gpu", f.run)
	case f.replay && (changed("run") || f.goldens || f.observer):
		return usage("verify: --replay starts no engine: it goes with none of --run, --goldens and --observer")
	}
	for _, name := range []string{"run", "replay", "goldens", "mode", "observer", "timeout"} {
		if dumps && changed(name) {
			return usage("verify: --%s is for fixtures", name)
		}
	}
	return nil
}

func (f *verifyFlags) verify(ctx context.Context, args []string, changed func(string) bool,
	stdout, stderr io.Writer) error {
	if err := f.check(args, changed); err != nil {
		return err
	}
	subject := f.Actual
	if len(args) > 0 {
		subject = args[0]
	}
	abs, err := filepath.Abs(subject)
	if err != nil {
		return err
	}
	t := tree{dir: f.export, name: filepath.Base(abs), layers: f.layers}
	if t.dir == "" {
		t.dir = "verification_" + plain(t.name)
	}
	if err := t.check(f.force); err != nil {
		return err
	}
	verify := f.dumps
	made, err := f.made("verify")
	if err != nil {
		return err
	}
	if len(args) > 0 {
		made = nil
		verify = func(ctx context.Context, stderr io.Writer, done func(*report.Report, []judge.Case) error) error {
			return f.fixture(ctx, args[0], stderr, done)
		}
	}
	var r *report.Report
	wrong := verify(ctx, stderr, func(found *report.Report, cases []judge.Case) error {
		r = found
		r.Made = made
		return t.write(r, cases)
	})
	if wrong != nil && ctx.Err() != nil {
		wrong = context.Cause(ctx)
	}
	var e *exitError
	switch {
	case errors.As(wrong, &e) && e.code == exitUsage:
		return wrong
	case r == nil:
		// The results of an earlier run must not look like those of this one.
		r = failed(t.name, wrong)
		r.Made = made
		return &exitError{exitInfra, errors.Join(wrong, t.write(r, nil))}
	case wrong != nil:
		return wrong
	}
	if err := report.Text(stdout, r, textOptions(stdout, f.verbose, filepath.Join(t.dir, "report.json"))); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nwritten: %s\n",
		filepath.ToSlash(filepath.Join(t.dir, "summary.txt")+", report.html, report.json"))
	return exitOf(r)
}

// fixture runs the engines, or opens what they left, and hands the result over while its tensors
// can be read.
func (f *verifyFlags) fixture(ctx context.Context, dir string, stderr io.Writer,
	done func(*report.Report, []judge.Case) error) (err error) {
	cfg := session.Config{Fixtures: []string{dir}, Run: f.run, Mode: f.mode, Observer: f.observer,
		Diagnose: f.diagnose, Timeout: f.timeout, Started: time.Now(), Console: consoles(stderr), Context: ctx}
	reference := !f.replay && !f.goldens
	if f.replay {
		cfg.Run, cfg.Mode = setting.RunReplay, setting.ModeStandard // a recorded injected run is compared too
	}
	if reference {
		// The goldens of this run lie in a folder of their own: the fixture stays as it is.
		tmp, remove, err := supervise.TempDir("", "goparity-verify-")
		if err != nil {
			return err
		}
		defer remove()
		cfg.Goldens, cfg.Update = filepath.Join(tmp, "golden"), setting.UpdateAll
	}
	if _, err := fixture.Load(dir); err != nil {
		return err
	}
	s, err := session.Start(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if reference {
		if err := s.Update(stderr); err != nil {
			return fmt.Errorf("%w\nwith --goldens the fixture's goldens are the reference, and it need not run", err)
		}
	}
	opened := s.Default()
	c, err := opened.Comparison()
	if err != nil {
		return err
	}
	r, err := opened.Report()
	if err != nil {
		return err
	}
	return done(r, c.Cases)
}

// dumps compares dumps, like parity compare.
func (f *verifyFlags) dumps(ctx context.Context, stderr io.Writer,
	done func(*report.Report, []judge.Case) error) error {
	return f.compare(ctx, stderr, func(c compared) error {
		return done(c.Report(filepath.Base(filepath.Clean(f.Actual)), true), c.Cases)
	})
}
