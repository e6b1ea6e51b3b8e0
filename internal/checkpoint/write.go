package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Write makes the folder dir: the config.json of the folder model without what it says of
// quantisation, its other small files, and the weights as model.safetensors. Not more than one
// weight is in memory at a time.
func (c *Checkpoint) Write(dir, model string) (err error) {
	path := filepath.Join(model, "config.json")
	config, err := readObject(path)
	if err != nil {
		return err
	}
	for _, c := range config.levels() {
		delete(c, "quantization_config")
		delete(c, "quantization")
	}
	data, err := json.MarshalIndent(config, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
		return err
	}
	if err := copySmall(dir, model); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return mapfile.Guard(func() error { return safetensors.Write(file, c.Tensors.Named(), map[string]string{"format": "pt"}) })
}

// small are the ends of files that a model has besides its config and its weights: the tokenizer,
// templates, code.
var small = []string{".json", ".txt", ".model", ".jinja", ".tiktoken", ".py"}

func copySmall(dir, model string) error {
	entries, err := os.ReadDir(model)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == "config.json" || strings.HasSuffix(name, ".index.json") || !slices.Contains(small, filepath.Ext(name)) {
			continue
		}
		if st, err := os.Stat(filepath.Join(model, name)); err != nil || !st.Mode().IsRegular() { // a link into the hub's cache is one
			continue
		}
		if err := mapfile.Copy(filepath.Join(dir, name), filepath.Join(model, name)); err != nil {
			return err
		}
	}
	return nil
}
