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
	"sync"
	"text/tabwriter"

	"golang.org/x/term"

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

// textOptions: colour and the real width on a terminal, plain text elsewhere (NO_COLOR is
// respected). The report lies in file.
func textOptions(w io.Writer, verbose bool, file string) report.TextOptions {
	width, ok := terminal(w)
	return report.TextOptions{Verbose: verbose, File: file, All: "all with -v", Width: width,
		Color: ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// terminal reports whether w is one, and how wide it is, 0 where that is not known.
func terminal(w io.Writer) (width int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, _ = term.GetSize(int(f.Fd()))
	return width, true
}

// worthALine is how many bytes are compared before one could read how far it is.
const worthALine = 1 << 30

// progress returns what shows how far something is, and what clears its line. Totals below least are not worth one.
// Nothing is shown where there is no terminal.
func progress(w io.Writer, what string, least int64) (set func(done, total int64), end func()) {
	if _, ok := terminal(w); !ok {
		return nil, func() {}
	}
	var mu sync.Mutex
	line, shown := "", int64(0)
	show := func(text string) {
		fmt.Fprintf(w, "\r%s\r%s", strings.Repeat(" ", len(line)), text)
		line = text
	}
	set = func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		switch at := 100 * done / total; {
		case total < least || at <= shown: // workers report out of order
		case done >= total:
			show("")
		default:
			shown = at
			show(fmt.Sprintf("%s: %d %%", what, at))
		}
	}
	return set, func() { set(least+1, least+1) } // all is done
}
