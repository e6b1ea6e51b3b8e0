package session

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
)

// modelFolder is the folder of the fixture's model.
func (r *runner) modelFolder() string { return r.folder(r.yaml.Model.Path, r.yaml.Model.Revision) }

// folder is where a model lies: a folder beside the fixture, or one in the hub's cache of this machine; "" where it
// is not there.
func (r *runner) folder(path, revision string) string {
	switch {
	case path == "":
		return ""
	case fixture.Model{Model: engine.Model{Path: path}}.Local():
		return filepath.Join(r.dir, filepath.FromSlash(path))
	}
	return checkpoint.Snapshot(path, revision)
}

// config reads the model's config.json; nil where a model of the hub is not on this machine.
func (r *runner) config() (checkpoint.Config, error) {
	dir := r.modelFolder()
	if dir == "" {
		return nil, nil
	}
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	if !r.yaml.Model.Local() && errors.Is(err, fs.ErrNotExist) { // a part of the model is in the cache
		return nil, nil
	}
	return config, err
}

// evidence opens the weights and the config of the fixture's model, or the quantised weights on which
// the judging reference ran, once. Of a model from the hub they are those in its cache, or none.
func (f *Fixture) evidence() (checkpoint.Weights, checkpoint.Config, error) {
	config, err := f.config()
	if config == nil || err != nil {
		return nil, nil, err
	}
	path := f.modelFolder()
	if r, _ := f.yaml.Variant(f.yaml.Reference(string(f.cfg.Run))); r.IsDequantised() {
		path = f.yaml.QuantisedWeights()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.weights == nil {
		f.weights, err = checkpoint.Open(path)
		if !f.yaml.Model.Local() && errors.Is(err, fs.ErrNotExist) {
			return nil, config, nil
		}
		if err != nil {
			return nil, config, err
		}
	}
	return f.weights.Tensors, config, nil
}
