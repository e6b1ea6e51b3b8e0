package session

import (
	"path/filepath"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dequantised"
)

// config reads the model's config.json; a model from the hub has none here.
func (r *runner) config() (checkpoint.Config, error) {
	if !r.yaml.Model.Local() {
		return nil, nil
	}
	return checkpoint.ReadConfig(filepath.Join(r.dir, r.yaml.Model.Path, "config.json"))
}

// evidence opens the weights and the config in the fixture's model folder, or the quantised weights on
// which the judging reference ran, once. A model from the hub has none here.
func (f *Fixture) evidence() (checkpoint.Weights, checkpoint.Config, error) {
	config, err := f.config()
	if config == nil || err != nil {
		return nil, nil, err
	}
	path := filepath.Join(f.dir, f.yaml.Model.Path)
	if r, _ := f.yaml.Variant(f.yaml.Reference(string(f.cfg.Run))); r.IsDequantised() {
		path = f.yaml.QuantisedWeights()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.weights == nil {
		if f.weights, f.closeWeights, err = dequantised.Weights(path); err != nil {
			return nil, config, err
		}
	}
	return f.weights, config, nil
}
