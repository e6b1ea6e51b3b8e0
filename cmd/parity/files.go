package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func sameFile(a, b string) bool {
	sa, errA := os.Stat(a)
	sb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// writeOutput writes what a flag with a file asks for: nothing without one, and to stdout for "-".
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return write(stdout)
	}
	return writeFile(path, write)
}

// writeJSON is writeOutput of a value.
func writeJSON(path string, stdout io.Writer, v any) error {
	return writeOutput(path, stdout, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
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

const reportName = "report.json"

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

// findReport reads a report.json, or the one of a folder.
func findReport(path string) (r *report.Report, file string, err error) {
	if file = path; isDir(path) {
		file = filepath.Join(path, reportName)
	}
	if r, err = readReport(file); file != path && errors.Is(err, fs.ErrNotExist) {
		err = noReport(path)
	}
	return r, file, err
}

// noReport says what writes a report.json.
func noReport(path string) error {
	return fmt.Errorf("%s has no %s: parity compare --json, parity compare -o and go test with PARITY_OUT write one", path, reportName)
}

// foldersOf lists a folder and all below it, but for hidden ones, in the order of their paths.
func foldersOf(path string) (dirs []string, err error) {
	err = filepath.WalkDir(path, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case dir != path && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		dirs = append(dirs, dir)
		return nil
	})
	return dirs, err
}

// writeTable writes rows in columns.
func writeTable(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}
