package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

func newGolden() *cobra.Command {
	return group("golden", newPlan(), newUpdate(), newProgram(), newGoldenLs(), command("verify", cobra.MinimumNArgs(1), verifyAll),
		storeCommand("diff", cobra.ExactArgs(2), diff), newGoldenPrune())
}

func isFixture(dir string) bool { return exists(filepath.Join(dir, fixture.FileName)) }

// openStore opens the store of a fixture, or the store in that folder itself.
func openStore(dir string) (*store.Store, error) {
	s, err := store.Open(filepath.Join(dir, "golden"))
	if errors.Is(err, store.ErrNotFound) {
		if direct, derr := store.Open(dir); derr == nil {
			return direct, nil
		}
	}
	return s, err
}

// storeCommand is a command that has the stores of its arguments, open.
func storeCommand(name string, args cobra.PositionalArgs,
	do func(cmd *cobra.Command, dirs []string, stores []*store.Store) error) *cobra.Command {
	return command(name, args, func(cmd *cobra.Command, dirs []string) error {
		var stores []*store.Store
		for _, dir := range dirs {
			s, err := openStore(dir)
			if err != nil {
				return err
			}
			defer s.Close()
			stores = append(stores, s)
		}
		return do(cmd, dirs, stores)
	})
}

func newGoldenLs() *cobra.Command {
	var long bool
	c := storeCommand("ls", cobra.ExactArgs(1), func(cmd *cobra.Command, _ []string, stores []*store.Store) error {
		rows := [][]string{{"file", "tensors", "bytes", "engine", "date"}}
		for _, k := range stores[0].Runs() {
			files, err := lsRun(stores[0], k, long)
			if err != nil {
				return err
			}
			rows = append(rows, files...)
		}
		return writeTable(cmd.OutOrStdout(), rows)
	})
	c.Flags().BoolVarP(&long, "long", "l", false, "list every tensor with its range")
	return c
}

func lsRun(s *store.Store, k *store.Kept, long bool) (rows [][]string, err error) {
	row := func(file, tensors, engine, date string) {
		size := int64(0)
		if st, err := os.Stat(filepath.Join(s.Dir(), file)); err == nil {
			size = st.Size()
		}
		rows = append(rows, []string{report.Clean(k.Variant) + ": " + report.Clean(file), tensors, fmt.Sprint(size),
			report.Clean(engine), report.Clean(date)})
	}
	engine := k.Info.Engine + " " + k.Info.Versions[k.Info.Engine]
	if k.Blessed != "" {
		engine += " (blessed: " + k.Blessed + ")"
	}
	var run *dump.Run
	if long && len(k.Info.Order) > 0 {
		if run, err = s.Run(k); err != nil {
			return nil, err
		}
	}
	files := map[string]int{}
	for _, o := range k.Info.Order {
		files[o.File]++
	}
	for i, o := range k.Info.Order {
		if i == 0 || k.Info.Order[i-1].File != o.File {
			row(o.File, fmt.Sprint(files[o.File]), engine, k.Info.Date)
		}
		if run == nil {
			continue
		}
		t := run.Entries[i].Tensor
		stats, err := compare.StatsOf(t)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{"  " + report.Clean(run.Entries[i].Label()),
			t.DType().Short() + tensor.FormatShape(t.Shape()), fmt.Sprint(t.Len() * t.DType().Size()),
			fmt.Sprintf("%.4g … %.4g", stats.Min, stats.Max), ""})
	}
	for _, file := range k.Program {
		row(file, "", "program", "")
	}
	return rows, nil
}

func verifyAll(cmd *cobra.Command, dirs []string) (found error) {
	for _, dir := range dirs { // what is found in one is said before the next is opened
		err := verify(cmd, dir)
		if err != nil && err != errMismatch {
			return err
		}
		found = cmp.Or(found, err)
	}
	return found
}

// verify says what is wrong with a store; that is errMismatch.
func verify(cmd *cobra.Command, dir string) error {
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	if len(s.Runs()) == 0 {
		return fmt.Errorf("%s has no goldens: nothing was verified", dir)
	}
	problems, err := s.Verify(cmd.Context())
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	good := true
	for _, p := range problems {
		fmt.Fprintf(w, "%s: %s\n", dir, report.Clean(p.String()))
		good = good && p.Extra
	}
	if isFixture(dir) { // a store alone asks for nothing
		y, err := fixture.Load(dir)
		if err != nil {
			return err
		}
		for _, what := range y.Lacking(s.Steps, s.HasProgram) {
			good = false
			fmt.Fprintf(w, "%s: there is no golden %s, which fixture.yaml asks for: make it: parity golden update %s\n",
				dir, report.Clean(what), dir)
		}
	}
	if !good {
		return errMismatch
	}
	n, programs, files := 0, 0, map[string]bool{}
	for _, k := range s.Runs() {
		n += len(k.Info.Order)
		for _, o := range k.Info.Order {
			files[o.File] = true
		}
		if len(k.Program) > 0 {
			programs++
		}
	}
	_, err = fmt.Fprintf(w, "%s: %d goldens in %d files and %d programs are what the index says\n", dir, n, len(files), programs)
	return err
}

func diff(cmd *cobra.Command, dirs []string, stores []*store.Store) error {
	if len(stores[0].Runs()) == 0 && len(stores[1].Runs()) == 0 {
		return fmt.Errorf("neither %s nor %s has goldens: nothing was compared", dirs[0], dirs[1])
	}
	d := store.Diff(stores[0], stores[1], nil)
	lines := d.Lines(0)
	for _, line := range append(lines, d.Summary()) {
		fmt.Fprintln(cmd.OutOrStdout(), report.Clean(line))
	}
	if len(lines) > 0 {
		return errMismatch
	}
	return nil
}

func newGoldenPrune() *cobra.Command {
	var apply bool
	c := command("prune", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		gone, err := session.Prune(cmd.Context(), args[0], apply)
		what := map[bool]string{false: "would remove", true: "removed"}[apply]
		for _, g := range gone {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", what, report.Clean(g))
		}
		if len(gone) == 0 && err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), "nothing to prune")
		}
		return err
	})
	c.Flags().BoolVar(&apply, "apply", false, "remove them")
	return c
}

type updateFlags struct {
	dump, bless string
	run         setting.Run
	onlyNew     bool
	prune       bool
}

func newUpdate() *cobra.Command {
	var f updateFlags
	c := command("update", cobra.MinimumNArgs(1), f.update)
	c.PreRunE = f.check
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

func (f *updateFlags) check(*cobra.Command, []string) error {
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
	var found, failed error // what the recorded runs are, and what went wrong
	for _, dir := range fixtures {
		err := f.fixture(cmd, dir)
		switch {
		case err == nil:
		case errors.Is(err, errMismatch):
			found = err
		case errors.Is(err, errUnjudged):
			found = cmp.Or(found, err)
		case len(fixtures) > 1:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", dir, err))
		default:
			failed = err
		}
	}
	return cmp.Or(failed, found)
}

// errUnjudged: what compared nothing is no pass.
var errUnjudged = errors.New("the goldens are written, but there was no recorded run to judge, see above")

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

func (f *updateFlags) fixture(cmd *cobra.Command, dir string) error {
	update, stdout := setting.UpdateAll, cmd.OutOrStdout()
	if f.onlyNew {
		update = setting.UpdateNew
	}
	cfg := session.Config{Fixtures: []string{dir}, Update: update, GoldenDump: f.dump, Bless: f.bless, Prune: f.prune,
		Run: f.run, Context: cmd.Context()}
	if err := renew(cfg, stdout); err != nil {
		return err
	}
	// A new session: the other one has the old goldens open.
	cfg = session.Config{Fixtures: cfg.Fixtures, Context: cfg.Context}
	err := inSession(cfg, func(_ *session.Session, fx *session.Fixture) error {
		r, err := fx.Report()
		if err != nil {
			return err
		}
		c, err := fx.Comparison()
		for _, p := range fx.Problems(c) {
			fmt.Fprintf(stdout, "parity: %s: %s: %s\n", fx.Name(), p.Name, sanitize.Text(p.Text))
		}
		fmt.Fprintf(stdout, "parity: %s: %s: %s\n", fx.Name(), strings.ToUpper(string(r.Verdict)), report.Headline(r))
		if r.Verdict != report.Pass {
			return errMismatch
		}
		return err
	})
	if errors.Is(err, session.ErrNoRecordedRun) {
		fmt.Fprintf(stdout, "parity: %s: nothing was judged: %v\n", dir, err)
		return errUnjudged
	}
	return err
}

func renew(cfg session.Config, stdout io.Writer) error {
	return inSession(cfg, func(s *session.Session, _ *session.Fixture) error { return s.Update(stdout) })
}

func inSession(cfg session.Config, do func(*session.Session, *session.Fixture) error) error {
	s, err := session.Start(cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(s, s.Default()), s.Close())
}
