package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
)

type updateFlags struct {
	dump, bless string
	run         setting.Run
	onlyNew     bool
}

func newUpdate() *cobra.Command {
	var f updateFlags
	c := &cobra.Command{
		Use:   "update PACKAGE|FIXTURE …",
		Short: "renew goldens from the reference, and judge the recorded runs against them",
		Long: "update runs the reference, or takes its dump, and rewrites the goldens of fixtures. An argument is a\n" +
			"folder with a fixture.yaml, or packages as go test takes them, such as ./...: of these, the ones that\n" +
			"have a TestMain of goparity are updated. Then the recorded runs are judged against the new goldens:\n" +
			"exit code 1 if one does not fit any more.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.update(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.onlyNew, "new", false, "only what has no golden yet")
	fl.StringVar(&f.dump, "dump", "", "the reference's dump `folder` to import, in place of a run")
	fl.StringVar(&f.bless, "bless", "",
		"make the candidate's run golden, for this `reason`, which every report repeats")
	fl.TextVar(&f.run, "run", setting.RunReplay,
		"with --bless: the candidate's recorded run, `replay`, or one made now on the cpu or gpu")
	return c
}

func (f *updateFlags) update(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	var fixtures, patterns []string
	for _, a := range args {
		if exists(filepath.Join(a, "fixture.yaml")) {
			fixtures = append(fixtures, a)
		} else {
			patterns = append(patterns, a)
		}
	}
	var packages []string
	if len(patterns) > 0 {
		var err error
		if packages, err = parityPackages(ctx, patterns); err != nil {
			return err
		}
	}
	wrong := false
	for _, dir := range fixtures {
		ok, err := f.fixture(ctx, dir, stdout, stderr)
		if err != nil {
			return err
		}
		wrong = wrong || !ok
	}
	if len(packages) > 0 {
		ok, err := f.packages(ctx, packages, stdout, stderr)
		if err != nil {
			return err
		}
		wrong = wrong || !ok
	}
	if wrong {
		return &exitError{code: exitMismatch}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (f *updateFlags) check() error {
	switch {
	case f.bless == "" && f.run != setting.RunReplay:
		return usage("update: --run says which run --bless makes golden; the reference runs on the CPU")
	case f.bless != "" && strings.TrimSpace(f.bless) == "":
		return usage("update: --bless wants a reason")
	}
	if err := setting.MayUpdate(os.Getenv); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

func (f *updateFlags) mode() setting.Update {
	if f.onlyNew {
		return setting.UpdateNew
	}
	return setting.UpdateAll
}

// fixture updates one fixture here and judges its recorded run. ok is false if that fails.
func (f *updateFlags) fixture(ctx context.Context, dir string, stdout, stderr io.Writer) (ok bool, err error) {
	s, err := session.Start(session.Config{Fixtures: []string{dir}, Update: f.mode(), GoldenDump: f.dump,
		Bless: f.bless, Run: f.run, Console: consoles(stderr), Context: ctx})
	if err != nil {
		return false, err
	}
	err = s.Update(stdout)
	if err = errors.Join(err, s.Close()); err != nil {
		return false, err
	}
	y, err := fixture.Load(dir)
	if err != nil {
		return false, err
	}
	if recorded := filepath.Join(dir, "runs", y.Replay, dump.Standard); y.Replay == "" || !exists(recorded) {
		fmt.Fprintf(stdout, "parity: %s: there is no recorded run yet that could be judged\n", filepath.Base(dir))
		return true, nil
	}
	// A new session: the other one has the old goldens open.
	s, err = session.Start(session.Config{Fixtures: []string{dir}, Context: ctx})
	if err != nil {
		return false, err
	}
	defer s.Close()
	fx := s.Default()
	c, err := fx.Comparison()
	if err != nil {
		return false, err
	}
	r := c.Report(fx.Name(), true)
	for _, p := range fx.Problems() {
		fmt.Fprintf(stdout, "parity: %s: %s: %s\n", fx.Name(), p.Name, foreign.Text(p.Text))
	}
	fmt.Fprintf(stdout, "parity: %s: %s: %s\n", fx.Name(), strings.ToUpper(string(r.Verdict)), report.Headline(r))
	return r.Verdict == report.Pass && len(fx.Problems()) == 0, nil
}

// packages updates the fixtures of test packages, and then runs their tests. ok is false if these
// fail.
func (f *updateFlags) packages(ctx context.Context, packages []string, stdout, stderr io.Writer) (ok bool, err error) {
	fmt.Fprintf(stderr, "parity: update %s\n", strings.Join(packages, " "))
	args := append([]string{"test", "-count=1", "-timeout=0", "-v", "-run=^$"}, packages...)
	args = append(args, "-parity.update="+string(f.mode()))
	if f.dump != "" {
		abs, err := filepath.Abs(f.dump)
		if err != nil {
			return false, err
		}
		args = append(args, "-parity.dump="+abs)
	}
	if f.bless != "" {
		args = append(args, "-parity.bless="+f.bless, "-parity.run="+string(f.run))
	}
	var exit *supervise.ExitError
	switch err := goTest(ctx, args, stdout); {
	case errors.As(err, &exit) && exit.Signal == "":
		return false, errors.New("the update failed, see above: goldens that are not reported there are as they were")
	case err != nil:
		return false, err
	}
	fmt.Fprintln(stderr, "parity: judge the recorded runs against the new goldens")
	ok = true
	for _, p := range packages {
		var said strings.Builder
		err := goTest(ctx, []string{"test", "-count=1", p, "-parity.run=" + string(setting.RunReplay)}, &said)
		switch {
		case strings.Contains(said.String(), session.NoRecordedRun):
			fmt.Fprintf(stdout, "%s: there is no recorded run yet that could be judged\n", p)
			continue
		case errors.As(err, &exit) && exit.Signal == "":
			ok = false
		case err != nil:
			return false, err
		}
		io.WriteString(stdout, said.String())
	}
	return ok, nil
}

// goTest runs the command go under supervision, so that no test binary and no engine outlives this
// process, and shows its output as it comes.
func goTest(ctx context.Context, args []string, stdout io.Writer) error {
	log, err := os.CreateTemp("", "parity-update-*.log")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	done, shown := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(shown)
		for {
			select {
			case <-done:
				io.Copy(stdout, log)
				return
			case <-time.After(200 * time.Millisecond):
				io.Copy(stdout, log)
			}
		}
	}()
	// The build tag gpu is not set here: what runs is what the flags say.
	err = supervise.Run(ctx, supervise.Command{Path: "go", Args: args, Env: os.Environ(), LogFile: log.Name()})
	close(done)
	<-shown
	return err
}

// parityPackages lists the packages of patterns whose tests import testmain.
func parityPackages(ctx context.Context, patterns []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go",
		append([]string{"list", "-json=ImportPath,TestImports,XTestImports", "--"}, patterns...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, usage("update: %s: name packages, or folders with a fixture.yaml", strings.TrimSpace(errs.String()))
	}
	var found []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                string
			TestImports, XTestImports []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if slices.Contains(slices.Concat(p.TestImports, p.XTestImports), "github.com/goparity/goparity/testmain") {
			found = append(found, p.ImportPath)
		}
	}
	if len(found) == 0 {
		return nil, usage("update: no test of %s uses testmain: name other packages, or folders with a fixture.yaml",
			strings.Join(patterns, " "))
	}
	return found, nil
}
