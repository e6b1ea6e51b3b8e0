package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/setting"
)

type reportFlags struct {
	png, html, markdown, json, baseline string
	mode                                string
	within                              []string // limits by which a report can be judged again
	names                               string
	scope                               []string
	verbose                             bool
	junit                               junitFlags
}

func newReport() *cobra.Command {
	var f reportFlags
	var recorded, tensors []string // criteria that figures decide, and that need the tensors
	for _, c := range compare.Table() {
		switch {
		case c.Flag() != "":
			recorded = append(recorded, c.Key)
		case !c.Recorded:
			tensors = append(tensors, c.Key)
		}
	}
	c := &cobra.Command{
		Use:   "report DIR|report.json",
		Short: "show a report.json: text, picture, HTML; judge it by other limits; compare it with an earlier one; links in JUnit",
		Long: "report reads what parity compare --json, parity compare -o or go test with PARITY_OUT wrote, and needs\n" +
			"nothing else.\n\n" +
			"With --names or --scope the dumps that the report was made of are compared again, by these in place of\n" +
			"what it was made with; all other flags are about that comparison. Paths are those of the report, relative\n" +
			"to the working folder or else to the one in which it was made. A report of go test or of a fixture has\n" +
			"names and scope in fixture.yaml.\n\n" +
			"With --within the figures are judged again, by these criteria alone: " + strings.Join(recorded, ", ") + ".\n" +
			"A row that its figures do not decide is an error (exit code 3). What needs the tensors cannot be judged here:\n" +
			strings.Join(tensors, ", ") + ".\n\n" +
			"With --baseline the exit code is 1 if something got worse or is not judged any more, and 0 otherwise,\n" +
			"whatever fails in both.\n\n" +
			"With --junit [[ATTACHMENT|path]] lines are added to the failed tests of a JUnit file that judged a report in\n" +
			"DIR or below it, which GitLab, Jenkins and Azure DevOps show, and a Markdown summary is appended to --summary\n" +
			"(default: $GITHUB_STEP_SUMMARY). On GitHub up to ten annotations are printed. A DIR that is missing has no\n" +
			"reports; the exit code says nothing of them.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.junit.file != "":
				f.junit.reports = args
				return f.junit.attach(cmd.OutOrStdout())
			case f.junit.summary != "":
				return usage("report: --summary goes with --junit")
			case len(args) > 1:
				return usage("report: %s is one report too many: several go with --junit", args[1])
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.png, "png", "",
		"write the plot of the error along the depth to this `file` (- for standard output, in place of the text)")
	fl.StringVar(&f.mode, "mode", string(report.Standard),
		"with --png: whose points are filled, `standard` or injected; those of the other mode are rings")
	fl.StringVar(&f.html, "html", "", "write the page to this `file` (or -)")
	fl.StringVar(&f.markdown, "markdown", "", "write the summary for a CI's page to this `file` (or -)")
	fl.StringVar(&f.json, "json", "", "write the report as it was judged again to this `file` (or -)")
	fl.StringVar(&f.baseline, "baseline", "", "an earlier `report.json`: say what is better, worse, new and gone")
	addWithin(c, &f.within, "judge by these `limits` alone, keys of fixture.yaml: rel_l2=1e-4,row_rel_l2=1e-3", recorded...)
	fl.Func("max-abs", "--within atol, rtol 0", func(limit string) error { return fl.Set("within", "atol="+limit) })
	fl.StringVar(&f.names, "names", "", "compare the dumps again by this YAML `file`, see parity compare --names")
	fl.StringArrayVar(&f.scope, "scope", nil, "compare the dumps again by this `pattern`, see parity compare --scope; may be repeated")
	fl.StringVar(&f.junit.file, "junit", "", "add the reports of failed tests to this JUnit `file`")
	f.junit.add(c)
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	hide(fl, "max-abs", "mode")
	for _, other := range []string{"png", "html", "markdown", "json", "baseline", "within", "names", "scope"} {
		c.MarkFlagsMutuallyExclusive("junit", other)
	}
	c.MarkFlagsMutuallyExclusive("max-abs", "rtol")
	return c
}

// criteria returns those of the command line, none if nothing is to be judged again.
func (f *reportFlags) criteria() (compare.Criteria, error) {
	asked, err := parseWithin(f.within)
	for k := range asked.All() {
		if k.Flag() == "" {
			return nil, usage("report: --within %s needs the tensors: parity compare --within judges by it", k.Key)
		}
	}
	return asked, err
}

func (f *reportFlags) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	mode := report.Mode(f.mode)
	switch {
	case mode != report.Standard && mode != report.Injected:
		return usage("report: --mode %s: want standard or injected", f.mode)
	case mode != report.Standard && f.png == "":
		return usage("report: --mode is of the plot: give --png too")
	}
	criteria, err := f.criteria()
	if err != nil {
		return err
	}
	r, file, err := findReport(path)
	if err != nil {
		return err
	}
	inputs := []string{file, f.baseline}
	if f.names != "" || len(f.scope) > 0 || len(criteria) > 0 && len(r.Paths) > 0 && r.Made != nil {
		if r, err = f.again(ctx, r, file, stderr); err != nil {
			return err
		}
		for _, in := range r.Made.Paths() {
			inputs = append(inputs, *in)
		}
	}
	if len(criteria) > 0 && (len(r.Paths) == 0 || r.Made == nil) {
		if r, err = report.Rejudge(r, criteria, "command line"); err != nil {
			return usage("report: %v", err)
		}
	}
	return f.write(r, file, inputs, stdout)
}

// write writes all documents, of which one may take the place of the text.
func (f *reportFlags) write(r *report.Report, file string, inputs []string, stdout io.Writer) error {
	text, first := stdout, ""
	outputs := []struct {
		flag, path string
		write      func(io.Writer) error
	}{
		{"--json", f.json, func(w io.Writer) error { return report.Write(w, r) }},
		{"--png", f.png, func(w io.Writer) error { return export.PNG(w, r, report.Mode(f.mode)) }},
		{"--html", f.html, func(w io.Writer) error { return export.HTML(w, r, file) }},
		{"--markdown", f.markdown, func(w io.Writer) error { return report.Markdown(w, r, file) }},
	}
	for _, out := range outputs {
		switch {
		case out.path == "-" && first != "":
			return usage("report: %s - and %s - would mix two documents: write one of them to a file", first, out.flag)
		case out.path == "-":
			text, first = io.Discard, out.flag
		case slices.ContainsFunc(inputs, func(in string) bool { same, _ := sameFile(in, out.path); return same }):
			return usage("report: %s would be overwritten", out.path)
		}
	}
	for _, out := range outputs {
		if err := writeOutput(out.path, stdout, out.write); err != nil {
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

// again compares the dumps of a report by --names and --scope.
func (f *reportFlags) again(ctx context.Context, r *report.Report, file string, stderr io.Writer) (*report.Report, error) {
	if r.Made == nil {
		return nil, usage("report: %s was not made of two dumps by parity compare: "+
			"write names: or scope: into fixture.yaml and run the tests again, or compare the dumps with --names, --scope", file)
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
	if len(f.within) > 0 && len(r.Paths) > 0 { // figures judge no path
		in.Within = f.within
	}
	flags := inputFlags{Inputs: in, diagnose: setting.DiagnoseFull}
	made, err := flags.made()
	if err != nil {
		return nil, err
	}
	var out *report.Report
	err = flags.judge(ctx, stderr, r.Fixture, func(found *report.Report, _ []judge.Case) error {
		out = found
		out.Made = made
		return nil
	})
	return out, err
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
