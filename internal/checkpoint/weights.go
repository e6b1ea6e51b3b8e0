package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dequant"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
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
		parts, err := weightFiles(path)
		if err == nil {
			err = w.add(parts)
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

// weightFiles lists the .safetensors files that a path stands for.
func weightFiles(path string) ([]string, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		// An index says which files belong together: a folder may have the same weights twice.
		dir := globQuote(path)
		index, err := filepath.Glob(filepath.Join(dir, "*.safetensors.index.json"))
		if err != nil {
			return nil, err
		}
		if len(index) == 1 {
			return indexed(index[0])
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
		if len(files) > 1 { // an adapter is no part of the model
			files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "adapter_model.safetensors" })
		}
		if err != nil || len(files) > 0 {
			return files, err
		}
		return nil, fmt.Errorf("%s: no .safetensors file in this folder: %w", path, fs.ErrNotExist)
	case strings.HasSuffix(path, ".json"):
		return indexed(path)
	}
	return []string{path}, nil
}

// globQuote quotes a path for filepath.Glob, such as a folder with brackets in its name.
func globQuote(path string) string {
	if filepath.Separator == '\\' {
		return path // the backslash is a separator there and cannot quote
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// indexed lists the files that an index names, which are next to it.
func indexed(path string) ([]string, error) {
	data, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: want an index with a weight_map: %w", path, err)
	}
	var out []string
	for key, name := range index.Map {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: %s lies in %q: want the name of a file next to the index", path, key, name)
		}
		if part := filepath.Join(filepath.Dir(path), name); !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the weight_map is empty: give the .safetensors files themselves", path)
	}
	slices.Sort(out)
	return out, nil
}
