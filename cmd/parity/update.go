package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
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
		Use:   "update FIXTURE …",
		Short: "renew goldens from the reference, and judge the recorded runs against them",
		Long: "update runs the reference, or takes its dump, and rewrites the goldens of fixtures: of a folder with a\n" +
			"fixture.yaml, or with DIR/... of all below it. Then the recorded runs are judged against the new goldens:\n" +
			"exit code 1 if one does not fit any more, 3 if there was none to judge.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.update(cmd, args)
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

func (f *updateFlags) check() error {
	switch {
	case f.bless == "" && f.run != setting.RunReplay:
		return usage("update: --run says which run --bless makes golden; the reference runs on the CPU")
	case f.bless != "" && strings.TrimSpace(f.bless) == "":
		return usage("update: --bless wants a reason")
	case f.dump != "" && f.run != setting.RunReplay:
		return usage("update: --dump and --run: bless a dump or a run, not both")
	}
	return mayUpdate()
}

// mayUpdate refuses to write goldens where nobody would see it.
func mayUpdate() error {
	if err := setting.MayUpdate(os.Getenv); err != nil {
		return usage("%w", err)
	}
	return nil
}

func (f *updateFlags) update(cmd *cobra.Command, args []string) error {
	fixtures, err := fixturesOf(args)
	if err != nil {
		return err
	}
	worst := report.Pass
	for _, dir := range fixtures {
		verdict, failed := f.fixture(cmd, dir)
		if failed != nil && len(fixtures) > 1 {
			failed = fmt.Errorf("%s: %w", dir, failed)
		}
		err = errors.Join(err, failed)
		if worst != report.Fail && verdict != report.Pass {
			worst = verdict
		}
	}
	switch {
	case err != nil:
		return err
	case worst == report.Fail:
		return errMismatch
	case worst == report.Error:
		return errors.New("the goldens are written, but there was no recorded run to judge, see above")
	}
	return nil
}

// fixturesOf lists the folders with a fixture.yaml that are meant: DIR, or with DIR/... all below it.
func fixturesOf(args []string) (dirs []string, err error) {
	for _, a := range args {
		found := []string{a}
		if root, all := strings.CutSuffix(filepath.ToSlash(a), "..."); all {
			if found, err = foldersOf(filepath.Clean(root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		found = slices.DeleteFunc(found, func(dir string) bool { return !isFixture(dir) })
		if len(found) == 0 {
			return nil, usage("update: %s has no %s: name a folder that has one, or DIR/... for all below it", a,
				fixture.FileName)
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

// fixture updates one fixture and judges its recorded run. The verdict is an error if there is none: what compared nothing
// is no pass.
func (f *updateFlags) fixture(cmd *cobra.Command, dir string) (verdict report.Verdict, err error) {
	update, stdout := setting.UpdateAll, cmd.OutOrStdout()
	if f.onlyNew {
		update = setting.UpdateNew
	}
	err = renew(session.Config{Fixtures: []string{dir}, Update: update, GoldenDump: f.dump, Bless: f.bless, Prune: f.prune, Run: f.run,
		Context: cmd.Context()}, stdout)
	if err != nil {
		return "", err
	}
	// A new session: the other one has the old goldens open.
	err = judged(session.Config{Fixtures: []string{dir}, Context: cmd.Context()}, func(s *session.Session, c *judge.Comparison, r *report.Report) error {
		name := s.Default().Name()
		for _, p := range s.Default().Problems(c) {
			fmt.Fprintf(stdout, "parity: %s: %s: %s\n", name, p.Name, sanitize.Text(p.Text))
		}
		fmt.Fprintf(stdout, "parity: %s: %s: %s\n", name, strings.ToUpper(string(r.Verdict)), report.Headline(r))
		if verdict = report.Fail; r.Verdict == report.Pass {
			verdict = report.Pass
		}
		return nil
	})
	if errors.Is(err, session.ErrNoRecordedRun) {
		fmt.Fprintf(stdout, "parity: %s: nothing was judged: %v\n", dir, err)
		return report.Error, nil
	}
	return verdict, err
}

// renew writes goldens.
func renew(cfg session.Config, stdout io.Writer) error {
	s, err := session.Start(cfg)
	if err != nil {
		return err
	}
	return errors.Join(s.Update(stdout), s.Close())
}

// judged judges the run of a fixture, and hands the result over while its tensors can be read.
func judged(cfg session.Config, do func(s *session.Session, c *judge.Comparison, r *report.Report) error) (err error) {
	s, err := session.Start(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := s.Default().Comparison()
	if err != nil {
		return err
	}
	r, err := s.Default().Report()
	if err != nil {
		return err
	}
	return do(s, c, r)
}
