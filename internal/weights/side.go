package weights

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Side is one set of weights.
type Side struct {
	Path    string
	Tensors []tensor.Named    // in natural order
	Config  checkpoint.Config // nil if nothing is known
	Notes   []string          // what of a folder was not read
	files   []interface{ Close() error }
}

// Open opens weights: a file of tensors, an index of .safetensors files, or the folder of a model. Those of a .gguf
// file keep its names: which steps lie between them and Hugging Face's is what is judged. config is the
// model's config.json; "" for the one beside the weights, if there is one.
func Open(path, config string) (*Side, error) {
	at, err := checkpoint.Locate(path)
	if err != nil {
		return nil, err
	}
	s, err := OpenFiles(path, []string{cmp.Or(at.GGUF, path)})
	if err != nil {
		return nil, err
	}
	s.Notes = checkpoint.Unread(path)
	if config != "" || s.Config == nil {
		beside := filepath.Join(filepath.Dir(slices.Concat(at.Files, []string{at.GGUF})[0]), "config.json")
		s.Config, err = checkpoint.ReadConfig(cmp.Or(config, beside))
		if err != nil && (config != "" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Of is a set of weights that are open. The tensors must outlive it.
func Of(name string, tensors []tensor.Named, config checkpoint.Config) *Side {
	return (&Side{Path: name, Tensors: tensors, Config: config}).sorted()
}

func (s *Side) sorted() *Side {
	label.Sort(s.Tensors, func(t tensor.Named) string { return t.Name })
	return s
}

// OpenFiles opens files that together are one set of weights.
func OpenFiles(name string, paths []string) (*Side, error) {
	s, seen := &Side{Path: name}, map[string]bool{}
	for _, path := range paths {
		tensors, err := s.load(path)
		if err == nil && len(tensors) == 0 {
			err = fmt.Errorf("%s: no tensors", path)
		}
		for _, t := range tensors {
			if seen[t.Name] {
				err = fmt.Errorf("%s: %s is also in another of the files", path, t.Name)
			}
			seen[t.Name] = true
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.Tensors = append(s.Tensors, tensors...)
	}
	return s.sorted(), nil
}

// load opens a file of tensors, or what [checkpoint.Open] does.
func (s *Side) load(path string) ([]tensor.Named, error) {
	ext := strings.ToLower(filepath.Ext(path))
	st, err := os.Stat(path)
	if err == nil && st.IsDir() || slices.Contains([]string{"", ".json", ".safetensors"}, ext) {
		c, err := checkpoint.Open(path)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, c)
		return c.Tensors.Named(), nil
	}
	f, err := dump.OpenFile(path)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, f)
	if ext == ".gguf" {
		s.Config = checkpoint.GGUFConfig(f.Metadata)
	}
	return f.Tensors, nil
}

// Close closes the files.
func (s *Side) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
