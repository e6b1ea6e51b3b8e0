package judge

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
)

// loaded is what came of the weights that engines loaded, once somebody asks.
type loaded struct {
	once sync.Once
	list []weights.Result
	why  []string // why there is nothing, or something was not judged
}

// Loaded compares the weights that the candidate's engine loaded, which a run.json of its names, with
// those that the reference's loaded, or with the checkpoint. It is nil if one of both is not known;
// why says so.
//
// A weight that only one side has fails nothing here: engines leave out what they do not need and
// add what they calculate, and the audit of a run knows what a model lacks.
func (c *Comparison) Loaded() (list []weights.Result, why []string) {
	c.loaded.once.Do(func() {
		err := mapfile.Guard(func() (err error) {
			c.loaded.list, err = c.weigh()
			return err
		})
		if err != nil {
			c.loaded.why = append(c.loaded.why, err.Error())
		}
	})
	return c.loaded.list, c.loaded.why
}

func (c *Comparison) weigh() (list []weights.Result, err error) {
	i := slices.IndexFunc(c.Cases, func(k Case) bool { return len(k.Actual.Info.Weights) > 0 })
	if i < 0 {
		return nil, nil
	}
	k := c.Cases[i]
	what := fmt.Sprintf("the weights that the candidate loaded (%s)", strings.Join(k.Actual.Info.Weights, ", "))
	ref, closeRef, err := c.referenceWeights()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer closeRef()
	if ref == nil {
		return nil, fmt.Errorf("%s: no weights of the reference are known: --weights, or a fixture's model folder", what)
	}
	if list, err = c.weighAgainst(ref, k.Actual); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for i := range list {
		w := &list[i]
		switch w.Status {
		case weights.Missing:
			w.Status, w.Detail = weights.Ignored, "the engine loaded none that is called so"
		case weights.Unused:
			w.Status, w.Detail = weights.Ignored, "no weight of the reference is called so"
		}
	}
	return list, nil
}

// hashed reports whether a run has no weights but their hashes.
func hashed(r *dump.Run) bool {
	return len(r.Info.Weights) == 1 && filepath.Ext(r.Info.Weights[0]) == ".json"
}

// weighAgainst compares the weights that a run's engine loaded, or the hashes of them, with others.
func (c *Comparison) weighAgainst(ref *weights.Side, run *dump.Run) ([]weights.Result, error) {
	if hashed(run) {
		hashes, err := weights.ReadHashes(filepath.Join(run.Path, filepath.FromSlash(run.Info.Weights[0])))
		if err != nil {
			return nil, err
		}
		return weights.CompareHashes(c.ctx, ref, hashes)
	}
	cand, err := openLoaded(run)
	if err != nil {
		return nil, err
	}
	defer cand.Close()
	cand.Config = ref.Config
	// Codes of an engine's own packing say nothing without it.
	cand.Tensors = slices.DeleteFunc(cand.Tensors, func(t tensor.Named) bool { return !t.Tensor.DType().IsFloat() })
	r, err := weights.Compare(c.ctx, ref, cand, weights.Options{})
	if err != nil {
		return nil, err
	}
	return r.Weights, nil
}

// referenceWeights are those that the reference's engine loaded, or else the checkpoint's; nil if
// none are known.
func (c *Comparison) referenceWeights() (*weights.Side, func() error, error) {
	for _, k := range c.Cases {
		if len(k.Golden.Info.Weights) > 0 && !hashed(k.Golden) {
			s, err := openLoaded(k.Golden)
			if err != nil {
				return nil, nil, err
			}
			if c.search.Evidence != nil {
				if _, config, err := c.search.Evidence(); err == nil {
					s.Config = config
				}
			}
			return s, s.Close, nil
		}
	}
	if c.search.Evidence == nil {
		return nil, func() error { return nil }, nil
	}
	tensors, config, err := c.search.Evidence()
	if err != nil || len(tensors) == 0 {
		return nil, func() error { return nil }, err
	}
	var named []tensor.Named
	for name, t := range tensors {
		named = append(named, tensor.Named{Name: name, Tensor: t})
	}
	return weights.Of("the checkpoint", named, config), func() error { return nil }, nil
}

func openLoaded(r *dump.Run) (*weights.Side, error) {
	var paths []string
	for _, f := range r.Info.Weights {
		paths = append(paths, filepath.Join(r.Path, filepath.FromSlash(f)))
	}
	return weights.OpenFiles(r.Path, paths)
}

// weights adds what came of the weights to a report. A text or an input that differs comes first.
func (c *Comparison) weights(r *report.Report) {
	list, why := c.Loaded()
	r.NotJudged = append(r.NotJudged, why...)
	r.Weighs(list)
}
