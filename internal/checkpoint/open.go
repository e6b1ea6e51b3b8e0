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
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/gguf"
	"github.com/goparity/goparity/tensor/safetensors"
	"github.com/goparity/goparity/tensor/torchpt"
)

// Checkpoint is the open weights of a model, by the names of Hugging Face; quantised ones are what they
// stand for. The tensors must not be used after Close.
type Checkpoint struct {
	Tensors Weights
	files   []*tensor.File
}

// Open opens .safetensors files, index files (model.safetensors.index.json), and folders with either; files of torch.save;
// or one .gguf file, or a folder with nothing but that. Several files are one set, in which a key may occur only once.
func Open(paths ...string) (c *Checkpoint, err error) {
	c = &Checkpoint{Tensors: Weights{}}
	defer func() {
		if err != nil {
			c, err = nil, errors.Join(err, c.Close())
		}
	}()
	for _, path := range paths {
		var all []tensor.Named
		at, err := Locate(path)
		switch {
		case err != nil:
		case at.GGUF == "":
			all, err = c.load(at.Files)
		case len(paths) == 1:
			all, err = c.loadGGUF(at.GGUF)
		default:
			err = fmt.Errorf("%s: one .gguf file is all weights, and others stand beside it", at.GGUF)
		}
		if err != nil {
			return c, err
		}
		for _, t := range all {
			c.Tensors[t.Name] = t.Tensor
		}
	}
	return c, nil
}

// OpenQuantised is Open of one checkpoint. One without quantised weights is refused.
func OpenQuantised(path string) (*Checkpoint, error) {
	c, err := Open(path)
	if err == nil && len(c.Quantised()) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: no weight is quantised: what are the dequantised weights of it?", path), c.Close())
	}
	return c, err
}

// WriteDequantised writes the folder of a model with the numbers that the quantised weights of a checkpoint
// stand for, and returns the names of these. model is the folder with its other files.
func WriteDequantised(path, dir, model string) (quantised []string, err error) {
	c, err := OpenQuantised(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Quantised(), c.Write(dir, model)
}

// load opens .safetensors files, or those of torch.save, that belong together.
func (c *Checkpoint) load(files []string) (all []tensor.Named, err error) {
	have := map[string]bool{}
	for _, path := range files {
		open := safetensors.Open
		if slices.Contains([]string{".pt", ".pth", ".bin"}, strings.ToLower(filepath.Ext(path))) {
			open = torchpt.Open
		}
		f, err := open(path)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
		for _, t := range f.Tensors {
			if have[t.Name] || c.Tensors[t.Name] != nil {
				return nil, fmt.Errorf("%s: %s is also in another of the files", path, t.Name)
			}
			have[t.Name] = true
		}
		all = append(all, f.Tensors...)
	}
	dir, file := filepath.Split(files[0])
	if len(files) > 1 {
		file = ""
	}
	all, _, err = Dequantise(dir, file, all)
	return all, err
}

// loadGGUF opens a .gguf file.
func (c *Checkpoint) loadGGUF(path string) ([]tensor.Named, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	c.files = append(c.files, f)
	return fromGGUF(f, path)
}

// Quantised lists the matrices that are quantised, in order.
func (c *Checkpoint) Quantised() (names []string) {
	for _, w := range c.Tensors.Named() {
		if w.Tensor.Packing() != "" && len(w.Tensor.Shape()) > 1 {
			names = append(names, w.Name)
		}
	}
	return names
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

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
