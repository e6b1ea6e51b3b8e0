package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/docs"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/nearest"
	"github.com/goparity/goparity/internal/report"
)

// allCauses is the word for all of them.
const allCauses = "causes"

func newExplain() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain DIR|report.json|CAUSE",
		Short: "a report in at most 2 kB: verdict, place, cause, what was not judged, and the next command; or what a cause means",
		Long: "explain says in a few lines what a report.json found and which command to run next, for people in a\n" +
			"hurry, CI and coding agents. Of a folder, every report.json in it and below it is explained, in the order\n" +
			"of their paths, and every infra.txt that stands in place of one. With --json each is one line, a JSON\n" +
			"object whose keys docs/report.md describes.\n\n" +
			"Of a CAUSE, by the id that a report names, as \"norm/eps\", it prints what docs/causes.md says: what it looks like,\n" +
			"how it gets into a port, and the fix. Of \"" + allCauses + "\" it lists their ids.\n\n" +
			"exit codes: 0 all pass, 1 one fails, 3 none fails and one is an error or incomplete",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, name := cmd.OutOrStdout(), args[0]
			near, isNear := nearest.Nearest(name, docs.Causes())
			switch {
			case exists(name):
				return explain(w, name, asJSON)
			case name == allCauses:
				fmt.Fprintln(w, strings.Join(docs.Causes(), "\n"))
			case docs.Cause(name) != nil:
				fmt.Fprintln(w, name)
				for _, p := range docs.Cause(name)[1:] {
					fmt.Fprintf(w, "  %s: %s\n", p.Name, p.Text)
				}
			case isNear:
				return usage("there is no report and no cause %q: did you mean %q?", name, near)
			default:
				return fmt.Errorf("there is no report %q, and no such cause: parity explain %s lists them", name, allCauses)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, for each report")
	return c
}

// explain writes what a report says, or all of a folder, and returns the exit code of all.
func explain(w io.Writer, path string, asJSON bool) error {
	briefs, err := briefsOf(path)
	if err != nil {
		return err
	}
	code := exitPass
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
		switch {
		case b.Verdict == report.Fail:
			code = exitMismatch
		case b.Verdict != report.Pass && code == exitPass:
			code = exitInfra
		}
	}
	if code == exitPass {
		return nil
	}
	return &exitError{code: code}
}

// briefsOf explains a report, or all of a folder.
func briefsOf(path string) (briefs []*report.Brief, err error) {
	if !isDir(path) {
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

// briefOf explains what lies in a folder itself; nil if there is nothing. An infra.txt is of a later
// run than a report that judged something.
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
