package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/docs"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
)

type reportFlags struct {
	resultFlags
	png, html, markdown string
	baseline, junit     string
	within              []string // limits by which a report can be judged again
}

func newReport() *cobra.Command {
	var f reportFlags
	c := command("report", cobra.MinimumNArgs(1), f.run)
	fl := c.Flags()
	fl.StringVar(&f.png, "png", "",
		"write the plot of the error along the depth to this `file` (- for standard output, in place of the text)")
	fl.StringVar(&f.html, "html", "", "write the page to this `file` (or -)")
	fl.StringVar(&f.markdown, "markdown", "", "write the summary for a CI's page to this `file` (or -)")
	f.add(c, "the report as it was judged again", "list every port")
	fl.StringVar(&f.baseline, "baseline", "", "an earlier `report.json`: say what is better, worse, new and gone")
	addWithin(c, &f.within, "judge by these `limits` alone, keys of fixture.yaml: rel_l2=1e-4,row_rel_l2=1e-3",
		limitKeys((*compare.Criterion).Rejudges)...)
	fl.StringVar(&f.junit, "junit", "", "add the reports of failed tests to this JUnit `file`")
	for _, other := range []string{"png", "html", "markdown", "json", "baseline", "within", "verbose"} {
		c.MarkFlagsMutuallyExclusive("junit", other)
	}
	return c
}

func (f *reportFlags) run(cmd *cobra.Command, args []string) error {
	stdout := cmd.OutOrStdout()
	switch {
	case f.junit != "":
		return attach(stdout, f.junit, args)
	case len(args) > 1:
		return usage("report: %s is one report too many: several go with --junit", args[1])
	}
	criteria, err := parseWithin(f.within)
	if err != nil {
		return err
	}
	for k := range criteria.All() {
		if !k.Rejudges() {
			return usage("report: --within %s needs the tensors: parity compare --within judges by it", k.Key)
		}
	}
	r, file, err := findReport(args[0])
	if err != nil {
		return err
	}
	if len(criteria) > 0 {
		if r, err = report.Rejudge(r, criteria, "command line"); err != nil {
			return usage("report: %v", err)
		}
	}
	return f.documents(r, file, stdout)
}

func (f *reportFlags) documents(r *report.Report, file string, stdout io.Writer) error {
	text, first := stdout, ""
	outputs := []struct {
		flag, path string
		write      func(io.Writer) error
	}{
		{"--json", f.json, func(w io.Writer) error { return report.Write(w, r) }},
		{"--png", f.png, func(w io.Writer) error { return export.PNG(w, r, report.Standard) }},
		{"--html", f.html, func(w io.Writer) error { return export.HTML(w, r, file) }},
		{"--markdown", f.markdown, func(w io.Writer) error { return report.Markdown(w, r, file) }},
	}
	for _, out := range outputs {
		switch {
		case out.path == "-" && first != "":
			return usage("report: %s - and %s - would mix two documents: write one of them to a file", first, out.flag)
		case out.path == "-":
			text, first = io.Discard, out.flag
		case sameFile(file, out.path) || sameFile(f.baseline, out.path):
			return usage("report: %s would be overwritten", out.path)
		}
	}
	for _, out := range outputs {
		if err := writeOutput(out.path, stdout, out.write); err != nil {
			return err
		}
	}
	opt := textOptions(stdout, f.verbose, file)
	if f.baseline == "" {
		return errors.Join(report.Text(text, r, opt), exitOf(r))
	}
	old, _, err := findReport(f.baseline)
	if err != nil {
		return err
	}
	opt.File = ""
	switch worse, err := report.Baseline(text, old, r, opt); {
	case err != nil:
		return err
	case r.Verdict == report.Error:
		return exitOf(r)
	case worse:
		return errMismatch
	}
	return nil
}

// attach points the failed tests of a JUnit file to their reports: gotestsum writes no <system-out>.
func attach(stdout io.Writer, junit string, paths []string) error {
	xml, err := mapfile.Read(junit, mapfile.MaxListing)
	if err != nil {
		return err
	}
	files, err := reportFiles(paths)
	if err != nil {
		return err
	}
	var md bytes.Buffer
	for _, file := range files {
		r, err := readReport(file)
		if err != nil {
			return err
		}
		if xml, err = attachReport(xml, r, file); err == nil {
			err = report.Markdown(&md, r, file)
		}
		if err == nil && os.Getenv("GITHUB_ACTIONS") == "true" {
			err = report.Annotations(stdout, r)
		}
		if err != nil {
			return err
		}
	}
	st, err := os.Stat(junit)
	if err != nil {
		return err
	}
	err = mapfile.Replace(junit, st.Mode().Perm(), func(w io.Writer) error { _, err := w.Write(xml); return err })
	summary := os.Getenv("GITHUB_STEP_SUMMARY")
	if err != nil || summary == "" || md.Len() == 0 {
		return err
	}
	w, err := os.OpenFile(summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = w.Write(md.Bytes())
	return errors.Join(err, w.Close())
}

// attachReport adds a report, and its text beside it, to the failed tests of it.
func attachReport(xml []byte, r *report.Report, file string) ([]byte, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	attached := []string{file}
	if text := filepath.Join(filepath.Dir(file), "report.txt"); exists(text) {
		attached = append(attached, text)
	}
	for i, a := range attached {
		if attached[i], err = export.Path(a, wd, os.Getenv("JENKINS_URL") != ""); err != nil {
			return nil, err
		}
	}
	return export.Attach(xml, r, attached...)
}

// reportFiles lists the report.json of files and folders. A missing one is left out: the JUnit file has its failure.
func reportFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		if exists(path) && !mapfile.IsFolder(path) {
			files = append(files, path)
			continue
		}
		dirs, err := foldersOf(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, dir := range dirs {
			if file := filepath.Join(dir, reportName); exists(file) {
				files = append(files, file)
			}
		}
	}
	return files, nil
}

func newExplain() *cobra.Command {
	var asJSON bool
	c := command("explain", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		w, name := cmd.OutOrStdout(), args[0]
		near, isNear := label.Nearest(name, docs.Causes())
		switch {
		case exists(name):
			return explain(w, name, asJSON)
		case name == "causes":
			fmt.Fprintln(w, strings.Join(docs.Causes(), "\n"))
		case docs.Cause(name) != nil:
			fmt.Fprintln(w, name)
			for _, p := range docs.Cause(name)[1:] {
				fmt.Fprintf(w, "  %s: %s\n", p.Name, p.Text)
			}
		case isNear:
			return usage("there is no report and no cause %q: did you mean %q?", name, near)
		default:
			return fmt.Errorf("there is no report %q, and no such cause: parity explain causes lists them", name)
		}
		return nil
	})
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, for each report")
	return c
}

func explain(w io.Writer, path string, asJSON bool) error {
	briefs, err := briefsOf(path)
	if err != nil {
		return err
	}
	var found error
	for i, b := range briefs {
		text := b.Text()
		if asJSON {
			text = b.JSON()
		} else if i > 0 {
			text = append([]byte("\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		switch b.Verdict {
		case report.Pass:
		case report.Fail:
			found = errMismatch
		default:
			found = cmp.Or(found, errInfra)
		}
	}
	return found
}

func briefsOf(path string) (briefs []*report.Brief, err error) {
	if !mapfile.IsFolder(path) {
		r, err := readReport(path)
		if err != nil {
			return nil, err
		}
		return []*report.Brief{report.BriefOf(r, path)}, nil
	}
	dirs, err := foldersOf(path)
	for _, dir := range dirs {
		b, failed := briefOf(dir)
		if err = cmp.Or(err, failed); b != nil {
			briefs = append(briefs, b)
		}
	}
	if err == nil && briefs == nil {
		err = noReport(path)
	}
	return briefs, err
}

// briefOf explains what lies in a folder itself, nil for nothing. An infra.txt is of a later run than its report.
func briefOf(dir string) (*report.Brief, error) {
	file := filepath.Join(dir, reportName)
	r, err := readReport(file)
	if err == nil && r.Verdict == report.Error {
		return report.BriefOf(r, file), nil
	}
	fixture, text, infraErr := engine.ReadStatus(dir)
	switch {
	case infraErr == nil:
		return report.BrokenBrief(fixture, text), nil
	case !errors.Is(infraErr, fs.ErrNotExist):
		return nil, infraErr
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil: // the others may be whole
		return report.BrokenBrief(filepath.Base(dir), err.Error()), nil
	}
	return report.BriefOf(r, file), nil
}
