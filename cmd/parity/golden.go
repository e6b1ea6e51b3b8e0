package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

func newGolden() *cobra.Command {
	c := &cobra.Command{
		Use:   "golden",
		Short: "the goldens of a fixture: plan, update, program, ls, verify, diff, prune",
		Args:  subcommand,
		RunE:  group,
	}
	c.AddCommand(newPlan(), newUpdate(), newProgram(), newGoldenLs(), newGoldenVerify(), newGoldenDiff(), newGoldenPrune())
	return c
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

// withStore hands over the store of a folder, open.
func withStore(dir string, do func(*store.Store) error) error {
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

func newGoldenLs() *cobra.Command {
	var long bool
	c := &cobra.Command{
		Use:   "ls FIXTURE",
		Short: "list the goldens, with -l every tensor",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], func(s *store.Store) error {
				rows := [][]string{{"file", "tensors", "bytes", "engine", "date"}}
				for _, k := range s.Runs() {
					files, err := lsRun(s, k, long)
					if err != nil {
						return err
					}
					rows = append(rows, files...)
				}
				return writeTable(cmd.OutOrStdout(), rows)
			})
		},
	}
	c.Flags().BoolVarP(&long, "long", "l", false, "list every tensor with its range")
	return c
}

// lsRun lists the files of a run, and its tensors.
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

func newGoldenVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FIXTURE …",
		Short: "read every golden and compare it with the hashes of the index",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (found error) {
			for _, dir := range args {
				err := withStore(dir, func(s *store.Store) error { return verify(cmd, dir, s) })
				if err != nil && err != errMismatch {
					return err
				}
				found = cmp.Or(found, err)
			}
			return found
		},
	}
}

// verify says what is wrong with a store; that is errMismatch.
func verify(cmd *cobra.Command, dir string, s *store.Store) error {
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

func newGoldenDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "how far goldens moved between two stores, the furthest first",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], func(old *store.Store) error {
				return withStore(args[1], func(now *store.Store) error {
					if len(old.Runs()) == 0 && len(now.Runs()) == 0 {
						return fmt.Errorf("neither %s nor %s has goldens: nothing was compared", args[0], args[1])
					}
					d := store.Diff(old, now, nil)
					lines := d.Lines(0)
					for _, line := range append(lines, d.Summary()) {
						fmt.Fprintln(cmd.OutOrStdout(), report.Clean(line))
					}
					if len(lines) > 0 {
						return errMismatch
					}
					return nil
				})
			})
		},
	}
}

func newGoldenPrune() *cobra.Command {
	var apply bool
	c := &cobra.Command{
		Use:   "prune FIXTURE",
		Short: "list goldens and recorded cases that no case of the fixture asks for; --apply removes them",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			gone, err := session.Prune(cmd.Context(), args[0], apply)
			what := "would remove"
			if apply {
				what = "removed"
			}
			for _, g := range gone {
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", what, report.Clean(g))
			}
			if len(gone) == 0 && err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to prune")
			}
			return err
		},
	}
	c.Flags().BoolVar(&apply, "apply", false, "remove them")
	return c
}
