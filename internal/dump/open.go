package dump

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor/raw"
)

// RunCase is the case of what parity run writes: it knows no fixture.
const RunCase = "run"

// OpenCases opens the runs of several cases, in the order in which path lists them. Those that a
// folder keeps, package store opens. path is one of:
//
//   - a folder with a [RunFile], of one run or of several "cases";
//   - a folder of dumps, each a folder with a run.json, a folder whose name is one of opt.Cases, or
//     a folder with step folders;
//   - a folder with tensors, or with folders that have tensors, one for each step;
//   - a file of tensors.
//
// The name of a run's case is that in its run.json, or else the name of its folder: if run.json has
// none, the one that parity run gives, or in opt.Cases the folder's and not its own.
func OpenCases(path string, opt Options) ([]*Run, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", path, errors.Unwrap(err))
	}
	if !st.IsDir() {
		return openRun(path, opt, (*Run).openFile)
	}
	if dirs := dumpFolders(path, opt); len(dirs) > 0 && !mapfile.IsFile(filepath.Join(path, RunFile)) {
		return openAll(dirs, opt)
	}
	return openFolder(path, opt)
}

// openFolder opens a folder with or without a run.json, which is no folder of dumps.
func openFolder(path string, opt Options) ([]*Run, error) {
	name := filepath.Join(path, RunFile)
	data, err := mapfile.Read(name, mapfile.MaxListing)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return openRun(path, opt, (*Run).openUnlisted)
	case err != nil:
		return nil, fmt.Errorf("dump: open %q: %w", path, err)
	}
	switch cases, err := parseSeveral(name, data); {
	case err != nil:
		return nil, err
	case cases != nil:
		return openSeveral(path, cases, opt)
	}
	return openRun(path, opt, func(r *Run, opt Options) error { return r.openListed(data, opt) })
}

// openRun opens the one run of a folder or file by its layout, and settles what is not said of it.
func openRun(path string, opt Options, layout func(*Run, Options) error) ([]*Run, error) {
	r := &Run{Path: path, Info: Info{Mode: Standard}}
	if name := filepath.Join(r.Path, ProgramFile); mapfile.IsFile(name) {
		r.Program = name
	}
	err := layout(r, opt)
	if err == nil && len(r.Entries) == 0 && len(r.Info.Text) == 0 {
		err = fmt.Errorf("dump: open %q: %w: want a folder with files named <layer>-<port> and %s, "+
			"step folders with such files, or one file of named tensors or printed ones (.log)",
			r.Path, ErrEmpty, Formats())
	}
	if err == nil {
		err = r.finish(opt)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return []*Run{r}, nil
}

// openListed opens a folder whose run.json is data.
func (r *Run) openListed(data []byte, opt Options) error {
	err := r.readInfo(filepath.Join(r.Path, RunFile), data, opt)
	switch {
	case err != nil:
	case len(r.Info.Order) > 0:
		err = r.openOrder(r.Path, opt)
	default:
		r.note("run.json lists no tensors: they were taken from the folder")
		err = r.openUnlisted(opt)
	}
	return cmp.Or(err, r.checkSteps())
}

// ReadInfo reads the run.json of a dump, but no tensor. It refuses a run that cannot be judged.
func ReadInfo(dir string) (Info, error) {
	name := filepath.Join(dir, RunFile)
	data, err := mapfile.Read(name, mapfile.MaxListing)
	if err != nil {
		return Info{}, fmt.Errorf("dump: %w", err)
	}
	var r Run
	err = r.readInfo(name, data, Options{})
	return r.Info, err
}

// readInfo parses run.json, and refuses a run that cannot be judged.
func (r *Run) readInfo(name string, data []byte, opt Options) (err error) {
	if r.Info, err = ParseInfo(name, data); err != nil {
		return err
	}
	r.HasInfo = true
	if err := r.Info.Judgeable(); err != nil && !opt.Unjudged {
		return fmt.Errorf("dump: open %q: %w", name, err)
	}
	for i, f := range r.Info.Weights {
		if !mapfile.IsFile(filepath.Join(filepath.Dir(name), f)) {
			return fmt.Errorf("dump: open %q: weights[%d]: there is no file %q in the dump's folder", name, i, f)
		}
	}
	return nil
}

// openOrder opens the tensors that run.json lists, of files in dir. Each file is read once.
func (r *Run) openOrder(dir string, opt Options) error {
	r.OrderBy = OrderRunFile
	open := map[string]map[string]Entry{} // by path, the tensors by their names
	for i, o := range r.Info.Order {
		path := filepath.Join(dir, o.Step, o.File)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			path = filepath.Join(dir, o.File)
		}
		if open[path] == nil {
			of := opt
			if spec, ok := r.Info.Raw[o.Step+"/"+o.File]; ok {
				of.Raw = func(string, int64) (raw.Spec, error) { return raw.Parse(spec) }
			}
			entries, err := r.read(path, o.File, of)
			if err != nil {
				return fmt.Errorf("%w (order entry %d of %s)", err, i, RunFile)
			}
			open[path] = map[string]Entry{}
			for _, e := range entries {
				open[path][e.Label()] = e // what a log shows again and again is the last
			}
			if len(entries) == 1 && !isLog(path) {
				open[path][""] = entries[0]
			}
		}
		e, ok := open[path][o.Name]
		if !ok && o.Name == "" {
			e, ok = open[path][label.Join(o.Layer, o.Port)]
		}
		if !ok {
			return fmt.Errorf("dump: open %q: order entry %d of %s: the file has no tensor %q", path, i, RunFile,
				cmp.Or(o.Name, label.Join(o.Layer, o.Port)))
		}
		e.Step, e.Layer, e.Port = o.Step, o.Layer, o.Port
		r.Entries = append(r.Entries, e)
	}
	return nil
}

// dumpFolders lists the folders in a folder that are dumps; none if the folder itself has tensors.
func dumpFolders(path string, opt Options) (dirs []string) {
	files, folders, err := list(path)
	if err != nil {
		return nil
	}
	bare := !slices.ContainsFunc(files, isTensorFile)
	for _, d := range folders {
		dir := filepath.Join(path, d)
		_, isStep := strconv.Atoi(d)
		if mapfile.IsFile(filepath.Join(dir, RunFile)) ||
			bare && (hasSteps(dir) || isStep != nil && slices.Contains(opt.Cases, d)) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// hasSteps reports whether a folder has tensors in its folders, and none itself.
func hasSteps(dir string) bool {
	files, folders, err := list(dir)
	if err != nil || slices.ContainsFunc(files, isTensorFile) {
		return false
	}
	return slices.ContainsFunc(folders, func(step string) bool {
		files, _, err := list(filepath.Join(dir, step))
		return err == nil && slices.ContainsFunc(files, isTensorFile)
	})
}

// openAll opens the dumps of several cases.
func openAll(dirs []string, opt Options) (runs []*Run, err error) {
	for _, d := range dirs {
		of, err := openFolder(d, opt)
		runs = append(runs, of...)
		if err == nil && len(of) > 1 {
			err = fmt.Errorf("dump: open %q: its run.json has %d cases, this is not a dump of one", d, len(of))
		}
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		r := of[0]
		r.Info.Case = r.Info.caseName(filepath.Base(d), opt)
		for _, o := range runs[:len(runs)-1] {
			if o.Info.Case == r.Info.Case {
				err := fmt.Errorf("dump: open %q: %s and %s are both of case %q: name one of them", filepath.Dir(d),
					filepath.Base(o.Path), filepath.Base(d), r.Info.Case)
				return nil, errors.Join(err, CloseAll(runs))
			}
		}
	}
	return runs, nil
}

// caseName settles the case of a run in a folder of dumps.
func (i *Info) caseName(folder string, opt Options) string {
	if i.Case == "" || i.Case == RunCase || !slices.Contains(opt.Cases, i.Case) && slices.Contains(opt.Cases, folder) {
		return folder
	}
	return i.Case
}

// CloseAll closes runs.
func CloseAll(runs []*Run) error {
	var errs []error
	for _, r := range runs {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// CaseNames lists the cases of runs, for messages.
func CaseNames(runs []*Run) string {
	var names []string
	for _, r := range runs {
		names = append(names, fmt.Sprintf("%q", r.Info.Case))
	}
	return strings.Join(names, ", ")
}

// severalSchema is the last version of a [RunFile] with cases that is read.
const severalSchema = 3

// parseSeveral returns the cases of a [RunFile] of several, as recorders outside write it, each as
// the run.json of a dump; nil for that of one.
func parseSeveral(name string, data []byte) ([]json.RawMessage, error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil || keys["cases"] == nil { // ParseInfo says what is wrong
		return nil, nil
	}
	var of struct {
		Schema int               `json:"schema"`
		Cases  []json.RawMessage `json:"cases"`
	}
	err := strict(data, &of)
	switch {
	case err != nil:
		err = fmt.Errorf(`%w: next to "cases" want "schema" alone, all other keys belong in each case`, err)
	case of.Schema > severalSchema:
		err = fmt.Errorf("schema is %d, this version reads 1 to %d", of.Schema, severalSchema)
	case len(of.Cases) == 0:
		err = errors.New("it has no cases")
	default:
		return of.Cases, nil
	}
	return nil, fmt.Errorf("dump: open %q: %w", name, err)
}

// openSeveral opens cases, whose files lie in the folder path.
func openSeveral(path string, cases []json.RawMessage, opt Options) (runs []*Run, err error) {
	for _, data := range cases {
		one, err := openRun(path, Options{Unjudged: opt.Unjudged}, func(r *Run, opt Options) error {
			err := r.readInfo(filepath.Join(path, RunFile), data, opt)
			if err == nil {
				err = r.openOrder(path, opt)
			}
			return cmp.Or(err, r.checkHashes(), r.checkSteps())
		})
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		if own := filepath.Join(path, one[0].Info.Case, ProgramFile); mapfile.IsFile(own) {
			one[0].Program = own
		} else if len(cases) > 1 {
			one[0].Program = ""
		}
		runs = append(runs, one...)
	}
	return runs, nil
}

// checkHashes compares the files of a run with the hashes that its run.json has.
func (r *Run) checkHashes() error {
	for _, file := range slices.Sorted(maps.Keys(r.Info.SHA256)) {
		if !filepath.IsLocal(file) {
			return fmt.Errorf("dump: open %q: file %q leaves the folder", filepath.Join(r.Path, RunFile), file)
		}
		got, err := mapfile.Hash(filepath.Join(r.Path, file))
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		if got != r.Info.SHA256[file] {
			return fmt.Errorf("dump: open %q: the file is damaged: its sha256 is %.12s…, %s says %.12s…: restore it or record the run again",
				filepath.Join(r.Path, file), got, RunFile, r.Info.SHA256[file])
		}
	}
	return nil
}
