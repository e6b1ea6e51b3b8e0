package dump

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor/raw"
)

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

// openFolder opens a folder with or without run.json.
func (r *Run) openFolder(opt Options) error {
	if name := filepath.Join(r.Path, ProgramFile); isFile(name) {
		r.Program = name
	}
	data, err := mapfile.Read(filepath.Join(r.Path, RunFile), mapfile.MaxListing)
	if errors.Is(err, fs.ErrNotExist) {
		if found, err := r.openStepOf(opt); found {
			return err
		}
		return r.openBare(opt)
	}
	if err != nil {
		return fmt.Errorf("dump: open %q: %w", r.Path, err)
	}
	if of, err := parseSeveral(filepath.Join(r.Path, RunFile), data); err != nil {
		return err
	} else if of != nil {
		return fmt.Errorf("dump: open %q: its run.json has %d cases, this is not a dump of one", r.Path, len(of.Cases))
	}
	if err := r.readInfo(filepath.Join(r.Path, RunFile), data, opt); err != nil {
		return err
	}
	if len(r.Info.Order) > 0 {
		err = r.openListed(opt)
	} else {
		r.note("run.json lists no tensors: they were taken from the folder")
		err = r.openBare(opt)
	}
	if err == nil {
		err = r.checkSteps()
	}
	return err
}

// readInfo parses run.json, and refuses a run that cannot be judged.
func (r *Run) readInfo(name string, data []byte, opt Options) (err error) {
	var notes []string
	if r.Info, notes, err = parseInfo(name, data); err != nil {
		return err
	}
	r.HasInfo, r.Notes = true, append(r.Notes, notes...)
	if err := r.Info.judgeable(); err != nil && !opt.Unjudged {
		return fmt.Errorf("dump: open %q: %w", name, err)
	}
	for i, f := range r.Info.Weights {
		if !isFile(filepath.Join(filepath.Dir(name), f)) {
			return fmt.Errorf("dump: open %q: weights[%d]: there is no file %q in the dump's folder", name, i, f)
		}
	}
	return nil
}

// openStepOf opens a folder that is one step of a dump. Its run.json is in the folder above.
func (r *Run) openStepOf(opt Options) (found bool, err error) {
	abs, err := filepath.Abs(r.Path)
	if err != nil {
		return false, nil
	}
	dir, step := filepath.Split(abs)
	name := filepath.Join(dir, RunFile)
	data, err := mapfile.Read(name, mapfile.MaxListing)
	if err != nil {
		return false, nil
	}
	ofStep := func(o OrderEntry) bool { return o.Step == step }
	var above struct {
		Order []OrderEntry `json:"order"`
	}
	if err := json.Unmarshal(data, &above); err != nil || !slices.ContainsFunc(above.Order, ofStep) {
		return false, nil // a run.json of something else
	}
	if err := r.readInfo(name, data, opt); err != nil {
		return true, err
	}
	r.Info.Order = slices.DeleteFunc(r.Info.Order, func(o OrderEntry) bool { return !ofStep(o) })
	r.note("one step of a dump: order and versions are those of the run.json above it")
	if name := filepath.Join(dir, ProgramFile); r.Program == "" && isFile(name) {
		r.Program = name
	}
	given := r.Path
	r.Path = filepath.Clean(dir)
	defer func() { r.Path = given }()
	return true, r.openListed(opt)
}

// openListed opens the tensors that run.json lists. Each file is read once.
func (r *Run) openListed(opt Options) error {
	r.OrderBy = OrderRunFile
	open := map[string]contents{}
	for i, o := range r.Info.Order {
		path := filepath.Join(r.Path, o.Step, o.File)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			path = filepath.Join(r.Path, o.File)
		}
		if open[path] == nil {
			entries, err := r.read(path, o.File, r.rawListed(o, opt))
			if err != nil {
				return fmt.Errorf("%w (order entry %d of %s)", err, i, RunFile)
			}
			open[path] = newContents(entries, isLog(path))
		}
		e, err := open[path].pick(o)
		if err != nil {
			return fmt.Errorf("dump: open %q: order entry %d of %s: %w", path, i, RunFile, err)
		}
		r.Entries = append(r.Entries, e)
	}
	return nil
}

// rawListed takes the dtype and shape of a headerless file from run.json.
func (r *Run) rawListed(o OrderEntry, opt Options) Options {
	if spec, ok := r.Info.Raw[o.Step+"/"+o.File]; ok {
		opt.Raw = func(string, int64) (raw.Spec, error) { return raw.Parse(spec) }
	}
	return opt
}

// contents are the tensors of a file by their names. That of a file with a single one is "", too.
type contents map[string]Entry

// newContents is of equal names the first one; of those that a log shows again and again the last.
func newContents(entries []Entry, log bool) contents {
	c := contents{}
	for _, e := range entries {
		if _, twice := c[e.Label()]; log || !twice {
			c[e.Label()] = e
		}
	}
	if len(entries) == 1 && !log {
		c[""] = entries[0]
	}
	return c
}

// pick finds the tensor of an order entry.
func (c contents) pick(o OrderEntry) (Entry, error) {
	e, ok := c[o.Name]
	if !ok && o.Name == "" {
		e, ok = c[label.Join(o.Layer, o.Port)]
	}
	if !ok {
		return e, fmt.Errorf("the file has no tensor %q", cmp.Or(o.Name, label.Join(o.Layer, o.Port)))
	}
	e.Step, e.Layer, e.Port = o.Step, o.Layer, o.Port
	return e, nil
}
