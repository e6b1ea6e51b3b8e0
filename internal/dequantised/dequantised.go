package dequantised

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/gguf"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Checkpoint is an open checkpoint. The tensors must not be used after Close.
type Checkpoint struct {
	Tensors   checkpoint.Weights // by the names of Hugging Face
	Quantised []string           // names of matrices that are quantised, sorted; at least one
	close     func() error
}

// Weights opens the weights of a model, quantised or not, as [checkpoint.Open] does, or of one .gguf
// file, or of a folder with nothing but that.
func Weights(paths ...string) (tensors checkpoint.Weights, closeAll func() error, err error) {
	if len(paths) == 1 {
		at, err := checkpoint.Locate(paths[0])
		if err != nil {
			return nil, nil, err
		}
		if at.GGUF != "" {
			return openGGUF(at.GGUF)
		}
	}
	for _, p := range paths {
		if isGGUF(p) {
			return nil, nil, fmt.Errorf("%s: one .gguf file is all weights, and others stand beside it", p)
		}
	}
	files, err := checkpoint.Open(paths...)
	if err != nil {
		return nil, nil, err
	}
	return files.Tensors, files.Close, nil
}

func isGGUF(path string) bool { return strings.EqualFold(filepath.Ext(path), ".gguf") }

func openGGUF(path string) (tensors checkpoint.Weights, closeAll func() error, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	all, err := fromGGUF(f, path)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	tensors = checkpoint.Weights{}
	for _, t := range all {
		tensors[t.Name] = t.Tensor
	}
	return tensors, f.Close, nil
}

// Open opens a .gguf file, a .safetensors file with its config.json beside it, or a folder of
// Hugging Face. One without quantised weights is refused.
func Open(path string) (*Checkpoint, error) {
	tensors, closeAll, err := Weights(path)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Tensors: tensors, close: closeAll}
	packed := map[string]bool{}
	for name, t := range c.Tensors {
		if t.Packing() != "" && len(t.Shape()) > 1 {
			packed[name] = true
		}
	}
	if len(packed) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: no weight is quantised: what are the dequantised weights of it?", path), c.Close())
	}
	c.Quantised = slices.Sorted(maps.Keys(packed))
	return c, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error { return c.close() }

// Write makes the folder dir: the config.json of the folder model without what it says of
// quantisation, its other small files, and the weights as model.safetensors. Not more than one
// weight is in memory at a time.
func (c *Checkpoint) Write(dir, model string) (err error) {
	path := filepath.Join(model, "config.json")
	data, err := mapfile.Read(path, mapfile.MaxConfig)
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s: want a JSON object: %w", path, err)
	}
	for _, part := range []string{"", "text_config", "llm_config"} {
		inner, _ := config[part].(map[string]any)
		if part == "" {
			inner = config
		}
		delete(inner, "quantization_config")
		delete(inner, "quantization")
	}
	if data, err = json.MarshalIndent(config, "", " "); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
		return err
	}
	if err := copyBeside(dir, model); err != nil {
		return err
	}
	var all []tensor.Named
	for _, name := range slices.Sorted(maps.Keys(c.Tensors)) {
		all = append(all, tensor.Named{Name: name, Tensor: c.Tensors[name]})
	}
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return mapfile.Guard(func() error { return safetensors.Write(file, all, map[string]string{"format": "pt"}) })
}

// beside are the ends of files that a model has besides its config and its weights: the tokenizer,
// templates, code.
var beside = []string{".json", ".txt", ".model", ".jinja", ".tiktoken", ".py"}

func copyBeside(dir, model string) error {
	entries, err := os.ReadDir(model)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == "config.json" || strings.HasSuffix(name, ".index.json") || !slices.Contains(beside, filepath.Ext(name)) {
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
