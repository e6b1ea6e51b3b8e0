package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/supervise"
)

// tree is the folder that parity compare -o writes. It never replaces or removes anything that it did
// not put there.
type tree struct{ dir string } // empty: none is written

// marker lies in a folder that parity compare wrote: who writes it holds its lock.
const marker = ".goparity-verification"

// fileWidth is how wide the lines of its files are.
const fileWidth = 120

// entries are what a tree consists of besides.
var entries = []string{"without_injection", "with_injection", reportName, "report.html", "summary.txt"}

// check refuses a folder with other files.
func (t tree) check() error {
	if t.dir == "" {
		return nil
	}
	found, err := os.ReadDir(t.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(found) > 0 && !exists(filepath.Join(t.dir, marker)) {
		return usage("compare: %s is not empty, and parity compare did not write it: give another folder", t.dir)
	}
	return nil
}

// write writes everything to a folder inside the tree first, and puts it in the place of what an earlier run wrote when
// it is complete. path is what was judged. cases is empty if nothing could be compared.
func (t tree) write(r *report.Report, path string, cases []judge.Case) (err error) {
	if t.dir == "" {
		return nil
	}
	unlock, err := supervise.LockFile(context.Background(), filepath.Join(t.dir, marker), nil)
	if err != nil {
		return err
	}
	defer unlock()
	tmp, err := os.MkdirTemp(t.dir, ".new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	for file, write := range t.files(r, path, cases) {
		file = filepath.Join(tmp, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), writeFile(file, write)); err != nil {
			return err
		}
	}
	for _, name := range entries {
		from, to := filepath.Join(tmp, name), filepath.Join(t.dir, name)
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// files are what is written, by names.
func (t tree) files(r *report.Report, path string, cases []judge.Case) map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{
		reportName:    func(w io.Writer) error { return report.Write(w, r) },
		"report.html": func(w io.Writer) error { return export.HTML(w, r, filepath.Join(t.dir, reportName)) },
		"summary.txt": func(w io.Writer) error { return r.Modes().Text(w, report.TextOptions{Width: fileWidth}) },
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	name := fmt.Sprintf("layer_verification_report_%s_%s.txt", plain(filepath.Base(path)), plain(encoding(r)))
	for i, mode := range []report.Mode{report.Standard, report.Injected} {
		folder := entries[i]
		var golden, actual []*dump.Run
		for _, k := range cases {
			if of := []*dump.Run{k.Actual, k.Injected}[i]; of != nil {
				golden, actual = append(golden, k.Golden), append(actual, of)
			}
		}
		if actual == nil {
			continue
		}
		files[folder+"/"+name] = func(w io.Writer) error { return r.Verification(mode).Text(w, report.TextOptions{Width: fileWidth}) }
		files[folder+"/mse_plot.png"] = func(w io.Writer) error { return export.PNG(w, r, mode) }
		files[folder+"/module_names_max.txt"] = func(w io.Writer) error { return writeLayers(w, actual) }
		files[folder+"/module_names_torch.txt"] = func(w io.Writer) error { return writeLayers(w, golden) }
	}
	return files
}

// writeLayers lists the layers of runs, each once, in execution order.
func writeLayers(w io.Writer, runs []*dump.Run) (err error) {
	seen := map[string]bool{}
	for _, r := range runs {
		for _, e := range r.Entries {
			if !seen[e.Layer] && err == nil {
				seen[e.Layer] = true
				_, err = fmt.Fprintln(w, report.Clean(e.Layer))
			}
		}
	}
	return err
}

func encoding(r *report.Report) string {
	if e := r.Source.Actual.Encoding; e != "" {
		return e
	}
	for _, l := range r.Layers { // of a dump that does not say
		if !l.IsInput() && l.Actual != nil {
			return l.Actual.DType
		}
	}
	return "unknown"
}

var notPlain = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// plain makes a name fit for a file's.
func plain(s string) string {
	s = notPlain.ReplaceAllString(s, "_")
	return strings.TrimLeft(s[:min(len(s), 80)], ".")
}
