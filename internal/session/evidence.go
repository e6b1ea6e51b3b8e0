package session

import (
	"path/filepath"

	"github.com/goparity/goparity/internal/checkpoint"
)

// evidence opens the weights and the config in the fixture's model folder, once. A model from the
// hub has none here.
func (f *Fixture) evidence() (checkpoint.Weights, checkpoint.Config, error) {
	if !f.yaml.Model.Local() {
		return nil, nil, nil
	}
	dir := filepath.Join(f.dir, f.yaml.Model.Path)
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.weights == nil {
		if f.weights, err = checkpoint.Open(dir); err != nil {
			return nil, config, err
		}
	}
	return f.weights.Tensors, config, nil
}
