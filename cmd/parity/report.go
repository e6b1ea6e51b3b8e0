package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	html "github.com/goparity/goparity/internal/report/page"
	"github.com/goparity/goparity/internal/report/plot"
	"github.com/goparity/goparity/internal/setting"
)

type reportFlags struct {
	png, html, markdown, json, mode, baseline string
	limits                                    map[*compare.Criterion]*float64 // what a report can be judged by again
	maxAbs                                    float64
	names                                     string
	scope                                     []string
	verbose                                   bool
}

func newReport() *cobra.Command {
	f := reportFlags{limits: map[*compare.Criterion]*float64{}}
	var again, tensors []string // flags by which a report can be judged again; criteria that need the tensors
	for _, c := range compare.Table() {
		switch {
		case c.Flag() != "":
			again = append(again, "--"+c.Flag())
		case !c.Recorded:
			tensors = append(tensors, c.Key)
		}
	}
	c := &cobra.Command{
		Use:   "report DIR|report.json",
		Short: "show a report.json: text, picture, HTML; judge it by other tolerances; compare it with an earlier one",
		Long: "report reads what parity compare --json, parity verify or go test with PARITY_OUT wrote, and needs\n" +
			"nothing else.\n\n" +
			"With --names or --scope the dumps that the report was made of are compared again, by these in place of\n" +
			"what it was made with; all other flags are about that comparison. Paths are those of the report, relative\n" +
			"to the working folder or else to the one in which it was made. A report of go test or of a fixture has\n" +
			"names and scope in fixture.yaml.\n\n" +
			"With " + strings.Join(again, ", ") + " or --max-abs\n" +
			"the figures are judged again, by these criteria alone. A row that its figures do not decide is an\n" +
			"error (exit code 3). What needs the tensors cannot be judged here:\n" +
			strings.Join(tensors, ", ") + ".\n\n" +
			"With --baseline the exit code is 1 if something got worse or is not judged any more, and 0 otherwise,\n" +
			"whatever fails in both.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0], cmd.Flags().Changed, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.png, "png", "",
		"write the plot of the error along the depth to this `file` (- for standard output, in place of the text)")
	fl.StringVar(&f.html, "html", "", "write the page to this `file` (or -)")
	fl.StringVar(&f.markdown, "markdown", "", "write the summary for a CI's page to this `file` (or -)")
	fl.StringVar(&f.json, "json", "", "write the report as it was judged again to this `file` (or -)")
	fl.StringVar(&f.mode, "mode", string(report.Standard),
		"whose points the plot fills: standard or injected; those of the other mode are rings")
	fl.StringVar(&f.baseline, "baseline", "", "an earlier `report.json`: say what is better, worse, new and gone")
	for _, c := range compare.Table() {
		if c.Flag() != "" {
			unit := ""
			if c.Unit != "" {
				unit = ", in " + c.Unit
			}
			f.limits[c] = fl.Float64(c.Flag(), 0, "judge by "+c.Rule+unit)
		}
	}
	fl.StringVar(&f.names, "names", "", "compare the dumps again by this YAML `file`, see parity compare --names")
	fl.StringArrayVar(&f.scope, "scope", nil, "compare the dumps again by this `pattern`, see parity compare --scope; may be repeated")
	fl.Float64Var(&f.maxAbs, "max-abs", 0, "judge by the largest |a − g|")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	return c
}

// criteria returns those of the command line, none if nothing is to be judged again.
func (f *reportFlags) criteria(changed func(string) bool) (compare.Criteria, error) {
	c := compare.Criteria{}
	for k, limit := range f.limits {
		if !changed(k.Flag()) {
			continue
		}
		if err := k.Check(*limit); err != nil {
			return nil, usage("report: --%s %v: %v", k.Flag(), *limit, err)
		}
		c[k] = *limit
	}
	if changed("max-abs") {
		if _, both := c.Tolerance(); both {
			return nil, usage("report: --max-abs is --atol with --rtol 0: give one of them")
		}
		if err := compare.Atol.Check(f.maxAbs); err != nil {
			return nil, usage("report: --max-abs %v: %v", f.maxAbs, err)
		}
		c[compare.Atol] = f.maxAbs
	}
	return c, nil
}

func (f *reportFlags) run(ctx context.Context, path string, changed func(string) bool, stdout, stderr io.Writer) error {
	mode := report.Mode(f.mode)
	if mode != report.Standard && mode != report.Injected {
		return usage("report: --mode %s: want standard or injected", f.mode)
	}
	if changed("mode") && f.png == "" {
		return usage("report: --mode is of the plot: give --png too")
	}
	if err := oneOutput("report", "--json", f.json, "--png", f.png, "--html", f.html, "--markdown", f.markdown); err != nil {
		return err
	}
	criteria, err := f.criteria(changed)
	if err != nil {
		return err
	}
	r, file, err := findReport(path)
	if err != nil {
		return err
	}
	inputs := []string{file, f.baseline}
	if f.names != "" || len(f.scope) > 0 {
		if r, err = f.again(ctx, r, file, stderr); err != nil {
			return err
		}
		inputs = append(inputs, r.Made.Files()...)
	}
	if len(criteria) > 0 {
		if len(r.Generations) > 0 {
			return usage("report: %s is of a generation, whose tokens decide: figures of layers cannot judge it again", file)
		}
		if r, err = report.Rejudge(r, criteria, "command line"); err != nil {
			return usage("report: %v", err)
		}
	}
	text := stdout
	for _, out := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{f.json, func(w io.Writer) error { return report.Write(w, r) }},
		{f.png, func(w io.Writer) error { return plot.PNG(w, r, mode) }},
		{f.html, func(w io.Writer) error { return html.Write(w, r, file) }},
		{f.markdown, func(w io.Writer) error { return report.Markdown(w, r, file) }},
	} {
		if out.path == "" {
			continue
		}
		if out.path == "-" {
			text = io.Discard
			if err := out.write(stdout); err != nil {
				return err
			}
			continue
		}
		if slices.ContainsFunc(inputs, func(in string) bool { same, err := sameFile(in, out.path); return in != "" && err == nil && same }) {
			return usage("report: %s would be overwritten", out.path)
		}
		if err := writeFile(out.path, out.write); err != nil {
			return err
		}
	}
	if f.baseline != "" {
		return f.against(r, text)
	}
	if err := report.Text(text, r, textOptions(stdout, f.verbose, file)); err != nil {
		return err
	}
	return exitOf(r)
}

// oneOutput refuses that two documents go to standard output: each flag is followed by its file.
func oneOutput(command string, outputs ...string) error {
	first := ""
	for i := 0; i < len(outputs); i += 2 {
		switch flag := outputs[i]; {
		case outputs[i+1] != "-":
		case first != "":
			return usage("%s: %s - and %s - would mix two documents: write one of them to a file", command, first, flag)
		default:
			first = flag
		}
	}
	return nil
}

// again compares the dumps of a report by --names and --scope.
func (f *reportFlags) again(ctx context.Context, r *report.Report, file string, stderr io.Writer) (*report.Report, error) {
	if r.Made == nil {
		return nil, usage("report: %s was not made of two dumps by parity compare or parity verify, or by an older version: "+
			"write names: or scope: into fixture.yaml and run the tests again, or compare the dumps with --names, --scope", file)
	}
	if r.Made.Command == report.Generate {
		return nil, usage("report: %s is of a generation: run parity generate --names again", file)
	}
	in, err := r.Made.Here()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if f.names != "" {
		in.Names = f.names
	}
	if len(f.scope) > 0 {
		in.Scope = f.scope
	}
	flags := inputFlags{Inputs: in, diagnose: setting.DiagnoseFull}
	made, err := flags.made(r.Made.Command)
	if err != nil {
		return nil, err
	}
	out, err := flags.report(ctx, stderr, r.Fixture)
	if err != nil {
		return nil, err
	}
	out.Made = made
	return out, nil
}

// against compares with the baseline.
func (f *reportFlags) against(r *report.Report, stdout io.Writer) error {
	old, _, err := findReport(f.baseline)
	if err != nil {
		return err
	}
	worse, err := report.Baseline(stdout, old, r, textOptions(stdout, f.verbose, ""))
	switch {
	case err != nil:
		return err
	case r.Verdict == report.Error:
		return exitOf(r)
	case worse:
		return &exitError{code: exitMismatch}
	}
	return nil
}

// exitOf returns the exit code of a verdict.
func exitOf(r *report.Report) error {
	switch r.Verdict {
	case report.Pass:
		return nil
	case report.Fail:
		return &exitError{code: exitMismatch}
	}
	return &exitError{exitInfra, errors.New(report.Headline(r))}
}

// findReport reads a report.json, or the one of a folder.
func findReport(path string) (r *report.Report, file string, err error) {
	file = path
	st, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	if st.IsDir() {
		file = filepath.Join(path, "report.json")
	}
	r, err = readReport(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", fmt.Errorf("%s has no report.json: parity verify, parity compare --json and go test with "+
			"PARITY_OUT write one", path)
	}
	return r, file, err
}
