package weights

import (
	"cmp"
	"context"
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

// Open opens weights: a file of tensors, an index of .safetensors files, or the folder of a model.
// Those of a .gguf file keep its names: which steps lie between them and Hugging Face's is what is
// judged. config is the model's config.json; "" for the one beside the weights, if there is one.
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

// Evidence opens the checkpoint and its config; without weights, none is known.
type Evidence = func() (checkpoint.Weights, checkpoint.Config, error)

// Loaded compares the weights that the engine of the first candidate loaded of which run.json names
// them, with those that the engine of a golden loaded, or else with the checkpoint, which evidence
// opens; nil for none. It is nil if the candidates name none.
//
// A weight that only one side has fails nothing here: engines leave out what they do not need and
// add what they calculate, and the audit of a run knows what a model lacks.
func Loaded(ctx context.Context, goldens, candidates []*dump.Run, evidence Evidence) ([]Result, error) {
	i := slices.IndexFunc(candidates, func(r *dump.Run) bool { return len(r.Info.Weights) > 0 })
	if i < 0 {
		return nil, nil
	}
	list, err := against(ctx, candidates[i], goldens, evidence)
	if err != nil {
		return nil, fmt.Errorf("the weights that the candidate loaded (%s): %w", strings.Join(candidates[i].Info.Weights, ", "), err)
	}
	for i := range list {
		switch w := &list[i]; w.Status {
		case Missing:
			w.Status, w.Detail = Ignored, "the engine loaded none that is called so"
		case Unused:
			w.Status, w.Detail = Ignored, "no weight of the reference is called so"
		}
	}
	return list, nil
}

// areHashes reports whether a run has no weights but their hashes.
func areHashes(r *dump.Run) bool {
	return len(r.Info.Weights) == 1 && filepath.Ext(r.Info.Weights[0]) == ".json"
}

// against compares the weights that a run's engine loaded, or the hashes of them, with the reference's.
func against(ctx context.Context, run *dump.Run, goldens []*dump.Run, evidence Evidence) ([]Result, error) {
	ref, err := ofReference(goldens, evidence)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	if areHashes(run) {
		hashes, err := ReadHashes(weightsOf(run)[0])
		if err != nil {
			return nil, err
		}
		return CompareHashes(ctx, ref, hashes)
	}
	cand, err := OpenFiles(run.Path, weightsOf(run))
	if err != nil {
		return nil, err
	}
	defer cand.Close()
	cand.Config = ref.Config
	// Codes of an engine's own packing say nothing without it.
	cand.Tensors = slices.DeleteFunc(cand.Tensors, func(t tensor.Named) bool { return !t.Tensor.DType().IsFloat() })
	r, err := Compare(ctx, ref, cand, Options{})
	if err != nil {
		return nil, err
	}
	return r.Weights, nil
}

// ofReference are the weights that the reference's engine loaded, or else the checkpoint's.
func ofReference(goldens []*dump.Run, evidence Evidence) (s *Side, err error) {
	known := Of("the checkpoint", nil, nil)
	if evidence != nil {
		var tensors checkpoint.Weights
		tensors, known.Config, err = evidence()
		known.Tensors = tensors.Named()
	}
	for _, r := range goldens {
		if len(r.Info.Weights) > 0 && !areHashes(r) {
			s, failed := OpenFiles(r.Path, weightsOf(r))
			if failed == nil && err == nil && known.Config != nil {
				s.Config = known.Config
			}
			return s, failed
		}
	}
	if err == nil && len(known.Tensors) == 0 {
		err = fmt.Errorf("no weights of the reference are known: --weights, or a fixture's model folder")
	}
	return known.sorted(), err
}

// weightsOf are the files of weights of a run.
func weightsOf(r *dump.Run) (paths []string) {
	for _, f := range r.Info.Weights {
		paths = append(paths, filepath.Join(r.Path, filepath.FromSlash(f)))
	}
	return paths
}
