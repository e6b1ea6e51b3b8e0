package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dequant"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Weights are the weights of the reference, by Hugging Face's keys.
type Weights map[string]*tensor.Tensor

// Of finds the weight of a layer and its key, for "model.model.layers.0.self_attn.q_proj" and
// "weight". A key fits if its module is the end of the layer's name at a dot, or the layer's name
// is the end of its module; the longest module that fits counts. t is nil if there is none, or if
// two keys fit equally well.
func (w Weights) Of(layer, name string) (key string, t *tensor.Tensor) {
	layer = label.Name(layer)
	for at, ok := layer, true; ok; _, at, ok = strings.Cut(at, ".") {
		if t := w[at+"."+name]; t != nil {
			return at + "." + name, t
		}
	}
	for k := range w {
		if strings.HasSuffix(k, "."+layer+"."+name) {
			if key != "" {
				return "", nil // ambiguous
			}
			key = k
		}
	}
	return key, w[key]
}

// Keys lists the keys of some weights, in order.
func (w Weights) Keys(are func(key string, t *tensor.Tensor) bool) (keys []string) {
	for key, t := range w {
		if are(key, t) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Files are open files of weights. The tensors must not be used after Close.
type Files struct {
	Tensors Weights
	files   []*tensor.File
}

// Open opens weights: .safetensors files, index files (model.safetensors.index.json), or folders
// with either. Several files are one set, in which a key may occur only once.
func Open(paths ...string) (w *Files, err error) {
	w = &Files{Tensors: Weights{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	for _, path := range paths {
		at, err := Locate(path)
		switch {
		case err != nil:
		case at.GGUF != "":
			err = fmt.Errorf("%s: want .safetensors files, an index of them, or a folder with either", at.GGUF)
		default:
			err = w.add(at.Files)
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

// add opens files that belong together. Of quantised weights it adds what they stand for.
func (w *Files) add(parts []string) error {
	var all []tensor.Named
	from := map[string]string{} // the file of a key
	for _, part := range parts {
		f, err := safetensors.Open(part)
		if err != nil {
			return err
		}
		w.files = append(w.files, f)
		all = append(all, f.Tensors...)
		for _, t := range f.Tensors {
			if w.Tensors[t.Name] != nil || from[t.Name] != "" {
				return fmt.Errorf("%s: %s is also in another of the files", part, t.Name)
			}
			from[t.Name] = part
		}
	}
	config, err := dequant.ReadConfig(filepath.Dir(parts[0]))
	if err != nil {
		return err
	}
	var elsewhere func(string) bool
	if len(parts) == 1 {
		if elsewhere, err = dequant.Elsewhere(filepath.Split(parts[0])); err != nil {
			return err
		}
	}
	all, _, err = dequant.Join(all, config, elsewhere)
	if err != nil {
		return err
	}
	for _, t := range all {
		w.Tensors[t.Name] = t.Tensor
	}
	return nil
}

// Close closes all files.
func (w *Files) Close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
