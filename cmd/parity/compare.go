package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/whole"
)

type compareFlags struct {
	inputFlags
	json    string
	verbose bool
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare --golden A --actual B",
		Short: "compare two dumps or two files; no fixture needed",
		Long: "compare judges every port that two dumps have in common and says which layer is the first to\n" +
			"diverge. A dump is a folder with files named <layer>-<port> and " + dump.Formats() + ",\n" +
			"with or without step folders and run.json, or one file. Without --atol or --rtol the defaults judge:\n" +
			"relative L2 of the tensor and of its worst row. A candidate whose run.json has passes ran along an\n" +
			"execution path (chunks, a batch, one token at a time): each row is judged by the golden's one pass.\n\n" +
			"Without --golden, --program and --weights judge: parity program MODEL --for B records the program.",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.positional("compare", args); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	f.both(c, scopeUsage)
	f.more(c)
	fl.StringVar(&f.OnePass, "one-pass", "", "the candidate's own `dump` of one pass, where --actual ran along an execution path")
	f.model(c)
	fl.StringVar(&f.Program, "program", "", "what the reference ran, a `program.json` (default: the one beside the golden's run.json); without --golden\nit judges alone, with --weights: each tensor is held against what the program makes of those before it")
	fl.StringVar(&f.Layers, "layers", "", "without --golden: only these blocks, as `0,1,last`")
	f.format(c)
	fl.StringVar(&f.Injection, "injection", "", "form of the injected run: nested or isolated (default: as recorded)")
	fl.Var(number{&f.Atol}, "atol", "absolute tolerance of |a − g| ≤ atol + rtol·|g|")
	fl.Var(number{&f.Rtol}, "rtol", "relative tolerance")
	fl.BoolVar(&f.EqualNaN, "equal-nan", false, "NaN matches NaN")
	fl.BoolVar(&f.Vacuous, "allow-vacuous", false, "let limits be so wide that zeros, other rows or the next layer's tensor would pass, too")
	fl.BoolVar(&f.Strict, "strict", false, "with a program: an error that a layer makes by itself fails within the tolerances, too")
	fl.BoolVar(&f.Reshape, "allow-reshape", false,
		"compare ports of one layer that have equally many elements in another shape")
	fl.StringVar(&f.json, "json", "", "write report.json to this `file` (- for standard output)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	return c
}

func (f *compareFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := f.keeps(f.json); err != nil {
		return err
	}
	made, err := f.made("compare")
	if err != nil {
		return err
	}
	r, err := f.report(ctx, stderr, cmp.Or(f.Golden, f.Program))
	var e *exitError
	if errors.As(err, &e) && e.code == exitUsage {
		return err
	}
	if r == nil {
		r = failed(cmp.Or(f.Golden, f.Program), err)
	}
	r.Made = made
	return f.write(r, stdout, err)
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

// file is where the report lies; empty: nowhere.
func (f *compareFlags) file() string {
	if f.json == "-" {
		return ""
	}
	return f.json
}

// write prints the report and returns the exit code.
func (f *compareFlags) write(r *report.Report, stdout io.Writer, cause error) error {
	text := stdout
	if f.json == "-" {
		text = io.Discard
		if err := report.Write(stdout, r); err != nil {
			return err
		}
	} else if f.json != "" {
		if err := writeFile(f.json, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
			return err
		}
	}
	if cause != nil {
		return &exitError{exitInfra, cause}
	}
	if err := report.Text(text, r, textOptions(stdout, f.verbose, f.file())); err != nil {
		return err
	}
	return exitOf(r)
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	var named *fs.PathError // it says which file
	if err != nil && !errors.As(err, &named) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(err, file.Close())
}

// replaceFile writes a file that is there already, or leaves it as it is.
func replaceFile(path string, data []byte) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return whole.File(path, st.Mode().Perm(), func(w io.Writer) error { _, err := w.Write(data); return err })
}
