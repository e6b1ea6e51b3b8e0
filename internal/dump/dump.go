package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// What the order of a run's entries was taken from.
const (
	OrderRunFile = "run.json"
	OrderNames   = "tensor_names.txt"
	OrderNatural = "the natural order of the names"
	OrderFile    = "the order in the file"
)

// ErrEmpty says that a folder or file holds no tensor at all.
var ErrEmpty = errors.New("no tensors")

// ErrUnknownShape is what Options.Raw says of a headerless file of which it does not know the shape: it is left out of a folder, with a note.
var ErrUnknownShape = errors.New("unknown shape")

// Run is an open dump. Its tensors are views of mapped files and must not be used after Close.
type Run struct {
	Path    string
	Info    Info // zero without run.json, but for the mode
	HasInfo bool
	OrderBy string // one of the Order constants
	Entries []Entry
	Notes   []string // what a report should say about the reading
	files   []*tensor.File
}

// Entry is one tensor of a run.
type Entry struct {
	Step, Layer, Port string // Layer is the label as it was dumped, with its call count: "model.norm(2)"
	Seq               int    // execution index in the run
	Tensor            *tensor.Tensor
	Printed           *Printed // what a log shows of it; nil where the tensor was dumped
}

// Label is "<layer>-<port>".
func (e Entry) Label() string { return label.Join(e.Layer, e.Port) }

// Options of Open.
type Options struct {
	// Raw gives dtype and shape of a headerless file by its label and size in bytes. Without it such files are refused.
	Raw func(label string, size int64) (raw.Spec, error)
	// FP8 is the type of arrays in .npy and .npz files of which numpy wrote only that they have one byte ("<V1").
	FP8 tensor.DType
	// Injection overrides what run.json or the ports say: Nested or Isolated.
	Injection string
}

// Open opens a folder or a file of tensors.
func Open(path string, opt Options) (*Run, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", path, errors.Unwrap(err))
	}
	r := &Run{Path: path, Info: Info{Mode: Standard}}
	switch {
	case st.IsDir():
		err = r.openFolder(opt)
	case isLog(path):
		err = r.openLog()
	default:
		err = r.openFile(opt)
	}
	if err == nil && len(r.Entries) == 0 {
		err = fmt.Errorf("dump: open %q: %w: want a folder with files <layer>-<port>.max, .pt, .npy, .npz or .safetensors, step folders with such files, or one file of named tensors or printed ones (.log)", path, ErrEmpty)
	}
	if err == nil {
		err = r.finish(opt)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// New makes a run of entries that are open elsewhere; seq is given by their order.
func New(path string, info Info, orderBy string, entries []Entry) *Run {
	for i := range entries {
		entries[i].Seq = i
	}
	return &Run{Path: path, Info: info, HasInfo: true, OrderBy: orderBy, Entries: entries}
}

// Close unmaps all files.
func (r *Run) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	r.files = nil
	return errors.Join(errs...)
}

// Steps lists the steps in the order of their first tensor.
func (r *Run) Steps() []string {
	var steps []string
	for _, e := range r.Entries {
		if !slices.Contains(steps, e.Step) {
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// Find gives the entry of a step, layer and port.
func (r *Run) Find(step, layer, port string) (Entry, bool) {
	for _, e := range r.Entries {
		if e.Step == step && e.Layer == layer && e.Port == port {
			return e, true
		}
	}
	return Entry{}, false
}

// finish numbers the entries, refuses two of one name, and settles the form of an injected run.
func (r *Run) finish(opt Options) error {
	type key struct{ step, layer, port string }
	seen := make(map[key]bool, len(r.Entries))
	nested := false
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Seq = i
		k := key{e.Step, e.Layer, e.Port}
		if seen[k] {
			return fmt.Errorf("dump: open %q: step %s has %q twice: keep one file of it", r.Path, e.Step, e.Label())
		}
		seen[k] = true
		nested = nested || strings.HasPrefix(e.Port, "computed_")
	}
	if opt.Injection != "" {
		r.Info.Injection = opt.Injection
	}
	if r.Info.Injection == "" && r.Info.Mode == Injected || nested && !r.HasInfo {
		r.Info.Mode, r.Info.Injection = Injected, Isolated
		if nested {
			r.Info.Injection = Nested
		}
	}
	return nil
}

func (r *Run) openFile(opt Options) error {
	r.OrderBy = OrderFile
	named, err := r.load(r.Path, filepath.Base(r.Path), opt)
	if err != nil {
		return err
	}
	if strings.ToLower(filepath.Ext(r.Path)) == ".safetensors" { // writers sort it, by dtype and name
		r.OrderBy = OrderNatural
		label.Sort(named, func(t tensor.Named) string { return t.Name })
	}
	for _, t := range named {
		layer, port := label.Split(t.Name)
		r.Entries = append(r.Entries, Entry{Step: "0", Layer: layer, Port: port, Tensor: t.Tensor})
	}
	return nil
}

func (r *Run) openFolder(opt Options) error {
	data, err := os.ReadFile(filepath.Join(r.Path, RunFile))
	if errors.Is(err, fs.ErrNotExist) {
		if found, err := r.openStepOf(opt); found {
			return err
		}
		return r.openBare(opt)
	}
	if err != nil {
		return fmt.Errorf("dump: open %q: %w", r.Path, err)
	}
	if cases, err := recordedCases(filepath.Join(r.Path, RunFile), data); err != nil {
		return err
	} else if cases != nil {
		return fmt.Errorf("dump: open %q: this is a recording of %d cases, not a dump of one", r.Path, len(cases))
	}
	r.HasInfo = true
	if r.Info, err = parseInfo(filepath.Join(r.Path, RunFile), data); err != nil {
		return err
	}
	if len(r.Info.Order) == 0 {
		r.note("run.json lists no tensors: they were taken from the folder")
		return r.openBare(opt)
	}
	return r.openListed(opt)
}

// openStepOf opens a folder that is one step of a dump: run.json lies above it.
func (r *Run) openStepOf(opt Options) (found bool, err error) {
	abs, err := filepath.Abs(r.Path)
	if err != nil {
		return false, nil
	}
	name := filepath.Join(filepath.Dir(abs), RunFile)
	data, err := os.ReadFile(name)
	if err != nil {
		return false, nil
	}
	info, err := parseInfo(name, data)
	if err != nil {
		return false, nil // of something else
	}
	step := filepath.Base(abs)
	info.Order = slices.DeleteFunc(info.Order, func(o OrderEntry) bool { return o.Step != step })
	if len(info.Order) == 0 {
		return false, nil
	}
	r.Info, r.HasInfo = info, true
	r.note("one step of a dump: order and versions are those of the run.json above it")
	dir := r.Path
	r.Path = filepath.Dir(abs)
	defer func() { r.Path = dir }()
	return true, r.openListed(opt)
}

// openListed opens what run.json lists.
func (r *Run) openListed(opt Options) (err error) {
	r.OrderBy = OrderRunFile
	open := map[string][]tensor.Named{}
	logs := map[string]map[string]Entry{}
	for i, o := range r.Info.Order {
		path := filepath.Join(r.Path, o.Step, o.File)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			path = filepath.Join(r.Path, o.File)
		}
		if isLog(path) {
			e, err := r.logged(logs, path, o)
			if err != nil {
				return fmt.Errorf("%w (order entry %d of %s)", err, i, RunFile)
			}
			r.Entries = append(r.Entries, e)
			continue
		}
		named, ok := open[path]
		if !ok {
			if named, err = r.load(path, o.File, r.rawListed(o, opt)); err != nil {
				return fmt.Errorf("%w (order entry %d of %s)", err, i, RunFile)
			}
			open[path] = named
		}
		t, err := pick(named, o)
		if err != nil {
			return fmt.Errorf("dump: open %q: order entry %d of %s: %w", path, i, RunFile, err)
		}
		r.Entries = append(r.Entries, Entry{Step: o.Step, Layer: o.Layer, Port: o.Port, Tensor: t})
	}
	return nil
}

// rawListed lets run.json say what a headerless file holds.
func (r *Run) rawListed(o OrderEntry, opt Options) Options {
	if spec, ok := r.Info.Raw[o.Step+"/"+o.File]; ok {
		opt.Raw = func(string, int64) (raw.Spec, error) { return raw.Parse(spec) }
	}
	return opt
}

// pick finds the tensor of an order entry in its file.
func pick(named []tensor.Named, o OrderEntry) (*tensor.Tensor, error) {
	if o.Name == "" && len(named) == 1 {
		return named[0].Tensor, nil
	}
	want := o.Name
	if want == "" {
		want = label.Join(o.Layer, o.Port)
	}
	for _, t := range named {
		if t.Name == want {
			return t.Tensor, nil
		}
	}
	return nil, fmt.Errorf("the file has no tensor %q", want)
}

// openBare reads a folder without run.json.
func (r *Run) openBare(opt Options) error {
	files, folders, err := list(r.Path)
	if err != nil {
		return err
	}
	files = r.tensorFiles(files, opt)
	type stepDir struct{ step, dir string }
	steps := []stepDir{{"0", r.Path}}
	if len(files) == 0 {
		steps = nil
		for _, d := range folders {
			steps = append(steps, stepDir{d, filepath.Join(r.Path, d)})
		}
	} else if len(folders) > 0 {
		r.note(fmt.Sprintf("read as a flat folder: the folders %s in it were left out", strings.Join(folders, ", ")))
	}
	for _, s := range steps {
		if s.dir != r.Path {
			if files, _, err = list(s.dir); err != nil {
				return err
			}
			files = r.tensorFiles(files, opt)
		}
		if err := r.openStep(s.step, s.dir, files, opt); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) openStep(step, dir string, files []string, opt Options) error {
	byLabel := map[string]*tensor.Tensor{}
	var labels []string
	for _, f := range files {
		named, err := r.load(filepath.Join(dir, f), f, opt)
		if err != nil {
			return err
		}
		for _, t := range named {
			if byLabel[t.Name] != nil {
				return fmt.Errorf("dump: open %q: %q is there twice, in files of different formats: keep one", dir, t.Name)
			}
			byLabel[t.Name] = t.Tensor
			labels = append(labels, t.Name)
		}
	}
	order, by, err := r.order(dir, labels)
	if err != nil {
		return err
	}
	if r.OrderBy == "" || by == OrderNatural {
		r.OrderBy = by
	}
	for _, l := range order {
		layer, port := label.Split(l)
		r.Entries = append(r.Entries, Entry{Step: step, Layer: layer, Port: port, Tensor: byLabel[l]})
	}
	return nil
}

// order sorts labels by tensor_names.txt, and those that it lacks behind them by their names.
func (r *Run) order(dir string, labels []string) ([]string, string, error) {
	label.Sort(labels, func(l string) string { return l })
	data, err := os.ReadFile(filepath.Join(dir, "tensor_names.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return labels, OrderNatural, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("dump: open %q: %w", dir, err)
	}
	rank := map[string]int{}
	have := map[string]bool{}
	for _, l := range labels {
		have[l] = true
	}
	var gone []string
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if _, ok := rank[l]; !ok {
			rank[l] = len(rank)
		}
		if !have[l] {
			gone = append(gone, l)
		}
	}
	if len(gone) > 0 {
		r.note(fmt.Sprintf("tensor_names.txt lists %d tensors that have no file, the first is %q", len(gone), gone[0]))
	}
	sort.SliceStable(labels, func(i, j int) bool {
		a, okA := rank[labels[i]]
		b, okB := rank[labels[j]]
		return okA && (!okB || a < b)
	})
	return labels, OrderNames, nil
}

func (r *Run) note(s string) { r.Notes = append(r.Notes, s) }

// list gives the visible files and folders of a folder in natural order.
func list(dir string) (files, folders []string, err error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("dump: open %q: %w", dir, err)
	}
	for _, e := range es {
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			st, err := os.Stat(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, nil, fmt.Errorf("dump: open %q: %w", dir, err)
			}
			isDir = st.IsDir()
		}
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case isDir:
			folders = append(folders, e.Name())
		default:
			files = append(files, e.Name())
		}
	}
	for _, l := range [][]string{files, folders} {
		slices.SortFunc(l, label.Natural)
	}
	return files, folders, nil
}
