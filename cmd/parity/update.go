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
	prune       bool
}

func newUpdate() *cobra.Command {
	var f updateFlags
	c := &cobra.Command{
		Use:   "update PACKAGE|FIXTURE …",
		Short: "renew goldens from the reference, and judge the recorded runs against them",
		Long: "update runs the reference, or takes its dump, and rewrites the goldens of fixtures. An argument is a\n" +
			"folder with a fixture.yaml, or packages as go test takes them, such as ./...: of these, the ones that\n" +
			"have a TestMain of goparity are updated. Then the recorded runs are judged against the new goldens:\n" +
			"exit code 1 if one does not fit any more, 3 if there was none to judge.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.update(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.onlyNew, "new", false, "only what has no golden yet")
	fl.BoolVar(&f.prune, "prune", false, "remove goldens that the reference's run has no more, too")
	fl.StringVar(&f.dump, "dump", "", "the reference's dump `folder` to import, in place of a run")
	fl.StringVar(&f.bless, "bless", "",
		"make the candidate's run golden, for this `reason`, which every report repeats")
	f.run = setting.RunReplay
	fl.Var(setting.Flag(&f.run), "run",
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
	wrong := judged{}
	for _, dir := range fixtures {
		j, err := f.fixture(ctx, dir, stdout, stderr)
		if err != nil {
			return err
		}
		wrong.add(j)
	}
	if len(packages) > 0 {
		j, err := f.packages(ctx, packages, stdout, stderr)
		if err != nil {
			return err
		}
		wrong.add(j)
	}
	switch {
	case wrong.failed:
		return &exitError{code: exitMismatch}
	case wrong.none:
		return errors.New("the goldens are written, but there was no recorded run to judge, see above")
	}
	return nil
}

// judged is what came of the recorded runs after an update.
type judged struct {
	failed bool // one does not fit the new goldens
	none   bool // there was none: what compared nothing is no pass
}

func (j *judged) add(o judged) { *j = judged{j.failed || o.failed, j.none || o.none} }

func (f *updateFlags) check() error {
	switch {
	case f.bless == "" && f.run != setting.RunReplay:
		return usage("update: --run says which run --bless makes golden; the reference runs on the CPU")
	case f.bless != "" && strings.TrimSpace(f.bless) == "":
		return usage("update: --bless wants a reason")
	case f.dump != "" && f.run != setting.RunReplay:
		return usage("update: --dump and --run: bless a dump or a run, not both")
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

// fixture updates one fixture here and judges its recorded run.
func (f *updateFlags) fixture(ctx context.Context, dir string, stdout, stderr io.Writer) (j judged, err error) {
	s, err := session.Start(session.Config{Fixtures: []string{dir}, Update: f.mode(), GoldenDump: f.dump,
		Bless: f.bless, Prune: f.prune, Run: f.run, Console: consoles(stderr), Context: ctx})
	if err != nil {
		return j, err
	}
	err = s.Update(stdout)
	if err = errors.Join(err, s.Close()); err != nil {
		return j, err
	}
	// A new session: the other one has the old goldens open.
	s, err = session.Start(session.Config{Fixtures: []string{dir}, Context: ctx})
	if err != nil {
		return j, err
	}
	defer s.Close()
	fx := s.Default()
	c, err := fx.Comparison()
	if errors.Is(err, session.ErrNoRecordedRun) {
		fmt.Fprintf(stdout, "parity: %s: nothing was judged: %v\n", fx.Name(), err)
		return judged{none: true}, nil
	}
	if err != nil {
		return j, err
	}
	r := c.Report(fx.Name(), true)
	problems := fx.Problems(c)
	for _, p := range problems {
		fmt.Fprintf(stdout, "parity: %s: %s: %s\n", fx.Name(), p.Name, foreign.Text(p.Text))
	}
	fmt.Fprintf(stdout, "parity: %s: %s: %s\n", fx.Name(), strings.ToUpper(string(r.Verdict)), report.Headline(r))
	return judged{failed: r.Verdict != report.Pass || len(problems) > 0}, nil
}

// packages updates the fixtures of test packages, and then runs their tests.
func (f *updateFlags) packages(ctx context.Context, packages []string, stdout, stderr io.Writer) (j judged, err error) {
	fmt.Fprintf(stderr, "parity: update %s\n", strings.Join(packages, " "))
	args := append([]string{"test", "-count=1", "-timeout=0", "-v", "-run=^$"}, packages...)
	args = append(args, "-parity.update="+string(f.mode()))
	if f.prune {
		args = append(args, "-parity.prune")
	}
	if f.dump != "" {
		abs, err := filepath.Abs(f.dump)
		if err != nil {
			return j, err
		}
		args = append(args, "-parity.dump="+abs)
	}
	if f.bless != "" {
		args = append(args, "-parity.bless="+f.bless, "-parity.run="+string(f.run))
	}
	var exit *supervise.ExitError
	switch err := goTest(ctx, args, stdout); {
	case errors.As(err, &exit) && exit.Signal == "":
		return j, errors.New("the update failed, see above: goldens that are not reported there are as they were")
	case err != nil:
		return j, err
	}
	fmt.Fprintln(stderr, "parity: judge the recorded runs against the new goldens")
	for _, p := range packages {
		var said strings.Builder
		err := goTest(ctx, []string{"test", "-count=1", p, "-parity.run=" + string(setting.RunReplay)}, &said)
		switch {
		case errors.As(err, &exit) && exit.Signal == "":
			none := strings.Contains(said.String(), session.ErrNoRecordedRun.Error())
			j.add(judged{failed: !none, none: none})
		case err != nil:
			return j, err
		}
		io.WriteString(stdout, said.String())
	}
	return j, nil
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
