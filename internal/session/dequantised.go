package session

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
)

// reference is the job that runs a variant of the reference, without its cases' tokens.
func (u *update) reference(variant string) (engine.Job, error) {
	job := u.yaml.Job(engine.Torch, engine.CPU)
	r, _ := u.yaml.Variant(variant)
	job.Encoding, job.KVType = r.DType, r.KVType
	if r.Adapter != "" {
		job.Adapter = filepath.Join(u.dir, filepath.FromSlash(r.Adapter))
	}
	if !r.IsDequantised() {
		return job, nil
	}
	if u.dequantised == "" {
		if err := u.dequantise(); err != nil {
			return job, fmt.Errorf("references: %s: %w", variant, err)
		}
	}
	job.Path, job.Local, job.Revision = u.dequantised, true, ""
	if r.Activations != "" {
		job.Activations = &engine.Activations{Rule: r.Activations, Weights: u.quantised}
	}
	return job, nil
}

// dequantise writes the model's folder with the numbers that the quantised weights stand for. It is
// removed when the session ends.
func (u *update) dequantise() error {
	model := u.modelFolder()
	if model == "" {
		return fmt.Errorf("%s is not in the hub's cache of this machine, and its config.json is needed", u.yaml.Model.Path)
	}
	path := u.yaml.QuantisedWeights()
	if path == "" {
		path = model
	}
	dir, err := u.tempDir()
	if err == nil {
		u.dequantised = filepath.Join(dir, "model")
		u.quantised, err = checkpoint.WriteDequantised(path, u.dequantised, model)
	}
	return err
}

// checkActivations refuses a run that rounded the inputs of products otherwise than a reference does.
func checkActivations(r *dump.Run, ref fixture.Reference) error {
	if rule := r.Info.Activations.Rule(); rule != ref.Activations {
		return fmt.Errorf("%s: it rounded the inputs of products by %q, and %s does so by %q (\"\": not at all)", r.Path, rule, ref.Variant, ref.Activations)
	}
	return nil
}

// quantisedFile gives MAX the .gguf file that the dequantised references stand for, unless the
// fixture names files itself.
func quantisedFile(job *engine.Job, y *fixture.Fixture) error {
	const files = "weight_path" // the setting of MAX
	path := y.QuantisedWeights()
	if job.Engine != engine.MAX || !strings.EqualFold(filepath.Ext(path), ".gguf") || job.Config[files] != nil {
		return nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	config := map[string]any{files: []string{abs}}
	maps.Copy(config, job.Config)
	job.Config = config
	return nil
}
