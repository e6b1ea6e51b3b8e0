package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
)

// junitFlags are the step after gotestsum, which writes no <system-out>: it points failing layers to
// their reports.
type junitFlags struct {
	file, summary string
	reports       []string
	absolute      bool
}

func (f *junitFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.summary, "summary", "", "with --junit: append the Markdown summary to this `file`")
	c.Flags().BoolVar(&f.absolute, "absolute", os.Getenv("JENKINS_URL") != "", "with --junit: absolute paths, as Jenkins wants them")
	hide(c.Flags(), "absolute")
}

// newJUnit is what earlier versions have for report --junit.
func newJUnit() *cobra.Command {
	var f junitFlags
	c := &cobra.Command{
		Use:    "junit --report DIR junit.xml",
		Short:  "parity report DIR --junit junit.xml",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.file = args[0]
			return f.attach(cmd.OutOrStdout())
		},
	}
	c.Flags().StringArrayVar(&f.reports, "report", nil, "a report.json, or a `folder` with some; may be repeated")
	f.add(c)
	return c
}

func (f *junitFlags) attach(stdout io.Writer) error {
	xml, err := mapfile.Read(f.file, mapfile.MaxListing)
	if err != nil {
		return err
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	files, err := reportFiles(f.reports)
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
			if !exists(a) {
				continue
			}
			p, err := export.Path(a, wd, f.absolute)
			if err != nil {
				return err
			}
			attach = append(attach, p)
		}
		if xml, err = export.Attach(xml, r, attach...); err != nil {
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
	summary := cmp.Or(f.summary, os.Getenv("GITHUB_STEP_SUMMARY"))
	if err := replaceFile(f.file, xml); err != nil || summary == "" || md.Len() == 0 {
		return err
	}
	w, err := os.OpenFile(summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = w.Write(md.Bytes())
	return errors.Join(err, w.Close())
}

// reportFiles lists the report.json of files and folders. What is missing is left out: that package did
// not get so far, and its failure is in the JUnit file.
func reportFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			files = append(files, path)
			continue
		}
		err := eachFolder(path, func(dir string) error {
			if file := filepath.Join(dir, reportName); exists(file) {
				files = append(files, file)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}
