package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/infra"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/brief"
)

func newExplain() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain DIR|report.json",
		Short: "a report in at most 2 kB: verdict, place, cause, what was not judged, and the next command",
		Long: "explain says in a few lines what a report.json found and which command to run next, for people in a\n" +
			"hurry, CI and coding agents. Of a folder, every report.json in it and below it is explained, in the order\n" +
			"of their paths, and every infra.txt that stands in place of one. With --json each is one line, a JSON\n" +
			"object whose keys docs/report.md describes.\n\n" +
			"exit codes: 0 all pass, 1 one fails, 3 none fails and one is an error or incomplete",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			briefs, err := briefsOf(args[0])
			if err != nil {
				return err
			}
			return explain(cmd.OutOrStdout(), briefs, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, for each report")
	return c
}

// explain writes the briefs and returns the exit code of all.
func explain(w io.Writer, briefs []*brief.Brief, asJSON bool) error {
	code := exitPass
	for i, b := range briefs {
		text := b.JSON()
		if !asJSON {
			if text = b.Text(); i > 0 {
				text = append([]byte("\n"), text...)
			}
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
func briefsOf(path string) (briefs []*brief.Brief, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		r, err := readReport(path)
		if err != nil {
			return nil, err
		}
		return []*brief.Brief{brief.Of(r, path)}, nil
	}
	err = filepath.WalkDir(path, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		b, err := briefOf(dir)
		if b != nil {
			briefs = append(briefs, b)
		}
		return err
	})
	if err == nil && len(briefs) == 0 {
		err = fmt.Errorf("%s and the folders in it have no report.json: parity verify, parity compare --json and go test with "+
			"PARITY_OUT write one", path)
	}
	return briefs, err
}

// briefOf explains what lies in a folder itself; nil if there is nothing. An infra.txt is of a later
// run than a report that judged something.
func briefOf(dir string) (*brief.Brief, error) {
	file := filepath.Join(dir, "report.json")
	r, err := readReport(file)
	if err == nil && r.Verdict == report.Error {
		return brief.Of(r, file), nil
	}
	fixture, text, infraErr := infra.ReadStatus(dir)
	switch {
	case infraErr == nil:
		return brief.Broken(fixture, text), nil
	case !errors.Is(infraErr, fs.ErrNotExist):
		return nil, infraErr
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil: // the others may be whole
		return brief.Broken(filepath.Base(dir), err.Error()), nil
	}
	return brief.Of(r, file), nil
}
