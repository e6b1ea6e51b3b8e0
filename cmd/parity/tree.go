package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/store"
)

// tree is the folder that parity compare -o writes. It never replaces or removes anything that it did
// not put there.
type tree struct {
	dir    string // empty: none is written
	name   string // of what was compared: part of the reports' names
	layers bool   // the tensors too
	force  bool   // next to other files
}

// marker lies in a folder that parity compare wrote.
const marker = ".goparity-verification"

// fileWidth is how wide the lines of its files are.
const fileWidth = 120

// entries are what a tree consists of.
var entries = []string{"without_injection", "with_injection", "report.json", "report.html", "summary.txt", marker}

// check refuses a folder with other files, unless that is forced. Even then only our own entries are
// replaced.
func (t tree) check() error {
	if t.dir == "" {
		return nil
	}
	found, err := os.ReadDir(t.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(found) == 0 || t.force || exists(filepath.Join(t.dir, marker)):
		return nil
	}
	return usage("compare: %s is not empty, and parity compare did not write it: give another folder, or --force to "+
		"put the results there next to what it has", t.dir)
}

// write writes everything to a folder inside the tree first, and puts it in place when it is
// complete. cases is empty if nothing could be compared.
func (t tree) write(r *report.Report, cases []judge.Case) (err error) {
	if t.dir == "" {
		return nil
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(t.dir, ".new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	files := map[string]func(io.Writer) error{
		"report.json": func(w io.Writer) error { return report.Write(w, r) },
		"report.html": func(w io.Writer) error { return export.HTML(w, r, filepath.Join(t.dir, "report.json")) },
		"summary.txt": func(w io.Writer) error { return r.Modes().Text(w, report.TextOptions{Width: fileWidth}) },
		marker: func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "parity compare wrote this folder and replaces its own files in it")
			return err
		},
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(tmp, name), write); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		folder string
		mode   report.Mode
		run    func(judge.Case) *dump.Run
	}{
		{"without_injection", report.Standard, func(k judge.Case) *dump.Run { return k.Actual }},
		{"with_injection", report.Injected, func(k judge.Case) *dump.Run { return k.Injected }},
	} {
		var golden, actual []*dump.Run
		for _, k := range cases {
			if run := m.run(k); run != nil {
				golden, actual = append(golden, k.Golden), append(actual, run)
			}
		}
		if len(actual) == 0 {
			continue
		}
		if err := t.mode(filepath.Join(tmp, m.folder), r, m.mode, golden, actual); err != nil {
			return err
		}
	}
	for _, name := range entries {
		from, to, old := filepath.Join(tmp, name), filepath.Join(t.dir, name), filepath.Join(tmp, "old."+name)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			err = os.Rename(to, old) // that of an earlier run
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		} else if err := mapfile.Swap(from, to, old); err != nil {
			return err
		}
	}
	return nil
}

// mode writes the folder of one mode.
func (t tree) mode(dir string, r *report.Report, mode report.Mode, golden, actual []*dump.Run) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	name := fmt.Sprintf("layer_verification_report_%s_%s.txt", plain(t.name), plain(encoding(r)))
	for name, write := range map[string]func(io.Writer) error{
		name:                     func(w io.Writer) error { return r.Verification(mode).Text(w, report.TextOptions{Width: fileWidth}) },
		"mse_plot.png":           func(w io.Writer) error { return export.PNG(w, r, mode) },
		"module_names_max.txt":   func(w io.Writer) error { return writeNames(w, actual) },
		"module_names_torch.txt": func(w io.Writer) error { return writeNames(w, golden) },
	} {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	if !t.layers {
		return nil
	}
	for name, runs := range map[string][]*dump.Run{"max_layers": actual, "torch_layers": golden} {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o755); err != nil {
			return err
		}
		if err := store.Save(sub, runs); err != nil {
			return err
		}
	}
	return nil
}

// writeNames lists the layers of runs, each once, in execution order.
func writeNames(w io.Writer, runs []*dump.Run) error {
	var names []string
	seen := map[string]bool{}
	for _, r := range runs {
		for _, e := range r.Entries {
			if !seen[e.Layer] {
				seen[e.Layer] = true
				names = append(names, report.Clean(e.Layer)+"\n")
			}
		}
	}
	_, err := io.WriteString(w, strings.Join(names, ""))
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

// plain makes a name fit for a file's.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			slices.Contains([]rune("._-"), r)) {
			return r
		}
		return '_'
	}, s)
	return strings.TrimLeft(s[:min(len(s), 80)], ".")
}
