package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	close   func() error
}

// Open opens weights: a file of tensors, an index of .safetensors files, or the folder of a model.
// config is the model's config.json; "" for the one beside the weights, if there is one.
func Open(path, config string) (*Side, error) {
	s := &Side{Path: path, close: func() error { return nil }}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir := path
	if !st.IsDir() {
		dir = filepath.Dir(path)
	} else if at, err := checkpoint.Locate(path); err == nil && at.GGUF != "" {
		s.Notes, path = checkpoint.Unread(path), at.GGUF
	} else if err == nil {
		s.Notes = checkpoint.Unread(path)
	}
	if err := s.load(path); err != nil {
		return nil, errors.Join(err, s.close())
	}
	label.Sort(s.Tensors, func(t tensor.Named) string { return t.Name })
	if config == "" {
		if s.Config != nil {
			return s, nil // of the file itself
		}
		config = filepath.Join(dir, "config.json")
		if _, err := os.Stat(config); errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
	}
	if s.Config, err = checkpoint.ReadConfig(config); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// Of is a set of weights that are open. The tensors must outlive it.
func Of(name string, tensors []tensor.Named, config checkpoint.Config) *Side {
	s := &Side{Path: name, Tensors: tensors, Config: config, close: func() error { return nil }}
	label.Sort(s.Tensors, func(t tensor.Named) string { return t.Name })
	return s
}

// OpenFiles opens files that together are one set of weights.
func OpenFiles(name string, paths []string) (*Side, error) {
	all := &Side{Path: name, close: func() error { return nil }}
	seen := map[string]bool{}
	for _, path := range paths {
		s := &Side{close: func() error { return nil }}
		err := s.load(path)
		before := all.close
		all.close = func() error { return errors.Join(before(), s.close()) }
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		for _, t := range s.Tensors {
			if seen[t.Name] {
				return nil, errors.Join(fmt.Errorf("%s: %s is also in another of the files", path, t.Name), all.close())
			}
		}
		for _, t := range s.Tensors { // a file that has a name twice is another error
			seen[t.Name] = true
		}
		all.Tensors = append(all.Tensors, s.Tensors...)
	}
	label.Sort(all.Tensors, func(t tensor.Named) string { return t.Name })
	return all, nil
}

func (s *Side) load(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".safetensors", ".json", "":
		files, err := checkpoint.Open(path)
		if err != nil {
			return err
		}
		s.close = files.Close
		for name, t := range files.Tensors {
			s.Tensors = append(s.Tensors, tensor.Named{Name: name, Tensor: t})
		}
	default:
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			files, err := checkpoint.Open(path)
			if err != nil {
				return err
			}
			s.close = files.Close
			for name, t := range files.Tensors {
				s.Tensors = append(s.Tensors, tensor.Named{Name: name, Tensor: t})
			}
			return nil
		}
		f, err := dump.OpenFile(path)
		if err != nil {
			return err
		}
		s.close, s.Tensors = f.Close, f.Tensors
		if ext == ".gguf" {
			s.Config = checkpoint.GGUFConfig(f.Metadata)
		}
	}
	if len(s.Tensors) == 0 {
		return fmt.Errorf("%s: no tensors", path)
	}
	return nil
}

// Close closes the files.
func (s *Side) Close() error { return s.close() }
