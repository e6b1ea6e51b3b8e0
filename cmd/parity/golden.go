package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/tensor"
)

func newGolden() *cobra.Command {
	c := &cobra.Command{
		Use:   "golden",
		Short: "the golden store of a fixture: ls, verify, diff, prune",
		RunE:  group,
	}
	c.AddCommand(newGoldenLs(), newGoldenVerify(), newGoldenDiff(), newGoldenPrune())
	return c
}

// openStore opens the store of a fixture, or the store in that folder itself.
func openStore(dir string) (*golden.Store, error) {
	s, err := golden.Open(filepath.Join(dir, "golden"))
	if errors.Is(err, golden.ErrNotFound) {
		if direct, derr := golden.Open(dir); derr == nil {
			return direct, nil
		}
	}
	return s, err
}

func newGoldenLs() *cobra.Command {
	var long bool
	c := &cobra.Command{
		Use:   "ls FIXTURE",
		Short: "list the goldens, with -l every tensor",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := openStore(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			return goldenLs(cmd.OutOrStdout(), s, long)
		},
	}
	c.Flags().BoolVarP(&long, "long", "l", false, "list every tensor with its range")
	return c
}

func goldenLs(w io.Writer, s *golden.Store, long bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "file\ttensors\tbytes\tengine\tdate")
	for _, p := range s.Passes() {
		v := p.Provenance
		engine := v.Engine + " " + v.Versions[v.Engine]
		if v.Blessed != "" {
			engine += " (blessed: " + v.Blessed + ")"
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\t%s\n", report.Clean(p.File), len(p.Tensors), p.Size, report.Clean(engine),
			report.Clean(v.Date))
		if !long {
			continue
		}
		for _, t := range p.Tensors {
			fmt.Fprintf(tw, "  %s\t%s%s\t%d\t%.4g … %.4g\t%.12s\n", report.Clean(t.Label()), t.DType.Short(),
				tensor.FormatShape(t.Shape), t.Length, t.Min, t.Max, t.SHA256)
		}
	}
	for _, p := range s.Programs() {
		for _, f := range p.Files {
			fmt.Fprintf(tw, "%s\t\t%d\tof %s\t\n", report.Clean(f.File), f.Size, report.Clean(p.Variant))
		}
	}
	return tw.Flush()
}

func newGoldenVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FIXTURE …",
		Short: "read every golden and compare it with the hashes of the manifest",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			bad := 0
			for _, dir := range args {
				n, err := goldenVerify(cmd.Context(), cmd.OutOrStdout(), dir)
				if err != nil {
					return err
				}
				bad += n
			}
			if bad > 0 {
				return &exitError{code: exitMismatch}
			}
			return nil
		},
	}
}

func goldenVerify(ctx context.Context, w io.Writer, dir string) (bad int, err error) {
	s, err := openStore(dir)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if len(s.Passes())+len(s.Programs()) == 0 {
		return 0, fmt.Errorf("%s has no goldens: nothing was verified", dir)
	}
	problems, err := s.Verify(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range problems {
		fmt.Fprintf(w, "%s: %s\n", dir, report.Clean(p.String()))
		if !p.Extra {
			bad++
		}
	}
	lacking, err := goldensLacking(dir, s)
	if err != nil {
		return 0, err
	}
	for _, what := range lacking {
		bad++
		fmt.Fprintf(w, "%s: there is no golden %s, which fixture.yaml asks for: make it: parity update %s\n",
			dir, report.Clean(what), dir)
	}
	if bad == 0 {
		n := 0
		for _, p := range s.Passes() {
			n += len(p.Tensors)
		}
		fmt.Fprintf(w, "%s: %d goldens in %d files%s are what the manifest says\n", dir, n, len(s.Passes()), programs(len(s.Programs())))
	}
	return bad, nil
}

// programs says how many programs there are.
func programs(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and a program"
	}
	return fmt.Sprintf(" and %d programs", n)
}

// goldensLacking lists what the fixture in dir asks for and the store lacks; nothing where dir is a
// store alone.
func goldensLacking(dir string, s *golden.Store) ([]string, error) {
	if !exists(filepath.Join(dir, fixture.FileName)) {
		return nil, nil
	}
	y, err := fixture.Load(dir)
	if err != nil {
		return nil, err
	}
	return append(y.Lacking(func(variant, caseName string) int { return len(s.Steps(variant, caseName)) }), y.LackingPrograms(s.HasProgram)...), nil
}

func newGoldenDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "how far goldens moved between two stores, the furthest first",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			old, err := openStore(args[0])
			if err != nil {
				return err
			}
			defer old.Close()
			now, err := openStore(args[1])
			if err != nil {
				return err
			}
			defer now.Close()
			if len(old.Passes()) == 0 && len(now.Passes()) == 0 {
				return fmt.Errorf("neither %s nor %s has goldens: nothing was compared", args[0], args[1])
			}
			d := golden.Diff(old, now)
			w := cmd.OutOrStdout()
			for _, m := range d.Moved {
				fmt.Fprintln(w, report.Clean(m.String()))
			}
			for _, k := range d.Added {
				fmt.Fprintf(w, "%s: new\n", report.Clean(k.String()))
			}
			for _, k := range d.Removed {
				fmt.Fprintf(w, "%s: gone\n", report.Clean(k.String()))
			}
			for _, p := range d.Programs {
				fmt.Fprintln(w, report.Clean(p))
			}
			fmt.Fprintf(w, "%d unchanged, %d moved, %d new, %d gone\n", d.Same, len(d.Moved), len(d.Added),
				len(d.Removed))
			if len(d.Moved)+len(d.Added)+len(d.Removed)+len(d.Programs) > 0 {
				return &exitError{code: exitMismatch}
			}
			return nil
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
