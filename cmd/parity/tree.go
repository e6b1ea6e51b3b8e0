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
)

// tree is the folder that parity compare -o writes. It never replaces or removes anything that it did
// not put there.
type tree struct{ dir string } // empty: none is written

// marker lies in a folder that parity compare wrote; what it is writing begins with newPrefix.
const marker, newPrefix = ".goparity-verification", ".new-"

// fileWidth is how wide the lines of its files are.
const fileWidth = 120

// entries are what a tree consists of.
var entries = []string{"without_injection", "with_injection", reportName, "report.html", "summary.txt", marker}

// check refuses a folder with other files.
func (t tree) check() error {
	if t.dir == "" {
		return nil
	}
	found, err := os.ReadDir(t.dir)
	found = slices.DeleteFunc(found, func(d fs.DirEntry) bool { return strings.HasPrefix(d.Name(), newPrefix) }) // another one writes it
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(found) == 0 || exists(filepath.Join(t.dir, marker)):
		return nil
	}
	return usage("compare: %s is not empty, and parity compare did not write it: give another folder", t.dir)
}

// write writes everything to a folder inside the tree first, and puts it in place when it is
// complete. path is what was judged. cases is empty if nothing could be compared.
func (t tree) write(r *report.Report, path string, cases []judge.Case) (err error) {
	if t.dir == "" {
		return nil
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(t.dir, newPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	text := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	files := map[string]func(io.Writer) error{
		reportName:    func(w io.Writer) error { return report.Write(w, r) },
		"report.html": func(w io.Writer) error { return export.HTML(w, r, filepath.Join(t.dir, reportName)) },
		"summary.txt": func(w io.Writer) error { return r.Modes().Text(w, report.TextOptions{Width: fileWidth}) },
		marker:        text("parity compare wrote this folder and replaces its own files in it\n"),
	}
	var standard, injected []*dump.Run
	var goldens, injectedGoldens []*dump.Run
	for _, k := range cases {
		standard, goldens = append(standard, k.Actual), append(goldens, k.Golden)
		if k.Injected != nil {
			injected, injectedGoldens = append(injected, k.Injected), append(injectedGoldens, k.Golden)
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("layer_verification_report_%s_%s.txt", plain(filepath.Base(abs)), plain(encoding(r)))
	add := func(folder string, mode report.Mode, golden, actual []*dump.Run) {
		if len(actual) == 0 {
			return
		}
		files[folder+"/"+name] = func(w io.Writer) error { return r.Verification(mode).Text(w, report.TextOptions{Width: fileWidth}) }
		files[folder+"/mse_plot.png"] = func(w io.Writer) error { return export.PNG(w, r, mode) }
		files[folder+"/module_names_max.txt"] = text(layersOf(actual))
		files[folder+"/module_names_torch.txt"] = text(layersOf(golden))
	}
	add("without_injection", report.Standard, goldens, standard)
	add("with_injection", report.Injected, injectedGoldens, injected)
	for file, write := range files {
		file = filepath.Join(tmp, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), writeFile(file, write)); err != nil {
			return err
		}
	}
	return t.replace(tmp)
}

// replace puts what was written in the place of what an earlier run wrote.
func (t tree) replace(tmp string) error {
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

// layersOf lists the layers of runs, each once, in execution order.
func layersOf(runs []*dump.Run) string {
	var text strings.Builder
	seen := map[string]bool{}
	for _, r := range runs {
		for _, e := range r.Entries {
			if !seen[e.Layer] {
				seen[e.Layer] = true
				text.WriteString(report.Clean(e.Layer) + "\n")
			}
		}
	}
	return text.String()
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
