package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/junit"
)

// newJUnit is the step after gotestsum, which writes no <system-out>: it points failing layers to
// their reports.
func newJUnit() *cobra.Command {
	var reports []string
	var summary string
	var absolute bool
	c := &cobra.Command{
		Use:   "junit --report DIR junit.xml",
		Short: "add the reports of failed tests to a JUnit file, and write a step summary",
		Long: "junit adds [[ATTACHMENT|path]] lines to the failed tests that judged a report, which GitLab, Jenkins and\n" +
			"Azure DevOps show, and appends a Markdown summary to --summary (default: $GITHUB_STEP_SUMMARY). On\n" +
			"GitHub it prints up to ten annotations. DIR is the folder that PARITY_OUT names: every report.json in it\n" +
			"and below it counts.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if summary == "" {
				summary = os.Getenv("GITHUB_STEP_SUMMARY")
			}
			return attachReports(args[0], reports, summary, absolute, cmd.OutOrStdout())
		},
	}
	c.Flags().StringArrayVar(&reports, "report", nil,
		"a report.json, or a `folder` with some; may be given several times, and a missing one is skipped")
	c.Flags().StringVar(&summary, "summary", "", "append the Markdown summary to this `file`")
	c.Flags().BoolVar(&absolute, "absolute", false,
		"absolute paths (Jenkins); otherwise relative to the working folder (GitLab)")
	return c
}

func attachReports(path string, reports []string, summary string, absolute bool, stdout io.Writer) error {
	xml, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return err
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	files, err := reportFiles(reports)
	if err != nil {
		return err
	}
	var md bytes.Buffer
	for _, file := range files {
		r, err := readReport(file)
		if err != nil {
			return err
		}
		var attach []string
		for _, a := range []string{file, filepath.Join(filepath.Dir(file), "report.txt")} {
			if _, err := os.Stat(a); err != nil {
				continue
			}
			p, err := junit.Path(a, wd, absolute)
			if err != nil {
				return err
			}
			attach = append(attach, p)
		}
		if xml, err = junit.Attach(xml, r, attach...); err != nil {
			return err
		}
		if err := report.Markdown(&md, r, file); err != nil {
			return err
		}
		if os.Getenv("GITHUB_ACTIONS") == "true" {
			if err := report.Annotations(stdout, r); err != nil {
				return err
			}
		}
	}
	if err := replaceFile(path, xml); err != nil {
		return err
	}
	if summary == "" || md.Len() == 0 {
		return nil
	}
	f, err := os.OpenFile(summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(md.Bytes())
	return errors.Join(err, f.Close())
}

// reportFiles lists the report.json of files and folders, those of a folder by their names. What is
// missing is left out: that package did not get so far, and its failure is in the JUnit file.
func reportFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			files = append(files, path)
			continue
		}
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && d.Name() == "report.json" {
				files = append(files, name)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}

func readReport(path string) (*report.Report, error) {
	f, err := mapfile.Reader(path, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := report.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
