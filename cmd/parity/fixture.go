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
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
)

// fixtureFlags say how the two sides of a fixture are run.
type fixtureFlags struct {
	dir             string // of the fixture; empty where dumps are compared
	run             setting.Run
	mode            setting.Mode
	observer        bool
	timeout         time.Duration
	reference       bool // it runs too, in place of the fixture's goldens
	verify          bool // as the command verify of earlier versions: both sides run, and a folder is written
	replay, goldens bool // of that: the recorded run, and the fixture's goldens
}

// liveFlags are the flags that only a fixture has.
var liveFlags = []string{"run", "mode", "observer", "timeout", "replay", "goldens"}

func (f *fixtureFlags) add(c *cobra.Command) {
	fl := c.Flags()
	f.run = setting.RunReplay
	fl.Var(setting.Flag(&f.run), "run",
		"of a fixture: judge the recorded run, `replay`, or run the candidate now, cpu or gpu")
	f.mode = setting.ModeBoth
	fl.Var(setting.Flag(&f.mode), "mode",
		"with --run: `both`, the run as it is and one on golden inputs, as only MAX can, or standard")
	fl.BoolVar(&f.observer, "observer", false,
		"with --run: run the engines once more without hooks: do these change what the model returns?")
	fl.DurationVar(&f.timeout, "timeout", 0, "with --run: stop the engines after this time (0: never)")
	fl.BoolVar(&f.verify, "verify", false, "run both sides, and write a folder")
	fl.BoolVar(&f.replay, "replay", false, "with --verify: judge the recorded run")
	fl.BoolVar(&f.goldens, "goldens", false, "with --verify: take the fixture's goldens, do not run the reference")
	hide(fl, "verify", "replay", "goldens")
	for _, live := range []string{"run", "goldens", "observer"} {
		c.MarkFlagsMutuallyExclusive("replay", live)
	}
}

// choose says what runs. It refuses inputs that a fixture has itself, and flags that would have no effect.
func (f *fixtureFlags) choose(dir string, in report.Inputs, changed func(string) bool) error {
	f.dir = dir
	if given := in.Args(); len(given) > 0 {
		return usage("compare: %s is for dumps, a fixture has its own: names, ignore, scope and tolerances in %s", given[0],
			filepath.ToSlash(filepath.Join(dir, fixture.FileName)))
	}
	if !changed("mode") {
		f.mode = setting.ModeCan
	}
	if f.verify && !changed("run") && !f.replay {
		f.run = setting.RunCPU
	}
	f.reference = f.verify && !f.replay && !f.goldens
	for _, live := range []string{"mode", "observer", "timeout"} {
		if f.run == setting.RunReplay && !f.verify && changed(live) {
			return usage("compare: --%s is for a fixture that runs now: --run cpu", live)
		}
	}
	return nil
}

// compare runs the engines, or opens what they left, and hands the result over while its tensors
// can be read.
func (f *fixtureFlags) compare(ctx context.Context, stderr io.Writer, diagnose setting.Diagnose,
	done handOver) (err error) {
	cfg := session.Config{Fixtures: []string{f.dir}, Run: f.run, Mode: f.mode, Observer: f.observer,
		Diagnose: diagnose, Timeout: f.timeout, Started: time.Now(), Console: consoles(stderr), Context: ctx}
	if f.reference {
		// The goldens of this run lie in a folder of their own: the fixture stays as it is.
		tmp, remove, err := supervise.TempDir("", "goparity-verify-")
		if err != nil {
			return err
		}
		defer remove()
		cfg.Goldens, cfg.Update = filepath.Join(tmp, "golden"), setting.UpdateAll
	}
	if _, err := fixture.Load(f.dir); err != nil {
		return err
	}
	s, err := session.Start(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if f.reference {
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
