package search

import (
	"errors"
	"fmt"
	"sync"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// ErrNoWeights says why pieces with weights cannot be replayed.
var ErrNoWeights = errors.New("its weights are not at hand")

// Evidence opens weights and config, as often as somebody asks; nil where there are none.
type Evidence func() (checkpoint.Weights, checkpoint.Config, error)

// Once returns evidence that is opened at the first call alone.
func (e Evidence) Once() Evidence {
	if e == nil {
		return nil
	}
	var once sync.Once
	var weights checkpoint.Weights
	var config checkpoint.Config
	var err error
	return func() (checkpoint.Weights, checkpoint.Config, error) {
		once.Do(func() { weights, config, err = e() })
		return weights, config, err
	}
}

// Outside returns what loads weights, constants and inputs of a program. Weights stay in memory up to
// mostWeights bytes, until done: a model is larger, and its pieces take its layers one after the other.
func (e Evidence) Outside(p *program.Program) (load replay.Load, done func()) {
	var recent recent
	load = func(v *program.Value) (*replay.Array, error) {
		var t *tensor.Tensor
		var err error
		switch {
		case v.Weight != "":
			if t, err = e.Weight(p, v); err != nil && v.Buffer != "" {
				missing := err
				if t, err = p.Constant(v.Buffer); err != nil {
					err = fmt.Errorf("%w; nor is it a buffer of the program: %w", missing, err)
				}
			}
		case v.Data != nil:
			t, err = tensor.New(v.DType, v.Shape, v.Data)
		case v.Constant != "":
			t, err = p.Constant(v.Constant)
		default:
			t, err = p.Constant("input:" + v.Input)
		}
		if err != nil {
			return nil, err
		}
		recent.use(t)
		return replay.FromTensor(t)
	}
	return load, recent.end
}

// Weight returns the weight that a value of a program is.
func (e Evidence) Weight(p *program.Program, v *program.Value) (*tensor.Tensor, error) {
	if e == nil {
		return nil, ErrNoWeights
	}
	weights, _, err := e()
	switch {
	case err != nil:
		return nil, err
	case len(weights) == 0:
		return nil, ErrNoWeights
	}
	return weights.Find(v.Weight, v.Shape, p.Aliases)
}

// recent are the tensors that were used last, and are in memory.
type recent struct {
	mu      sync.Mutex
	tensors []*tensor.Tensor
	bytes   int
}

// use notes that a tensor is used, and lets the system take those that were used before.
func (r *recent) use(t *tensor.Tensor) {
	data, _ := t.Bytes()
	if len(data) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tensors, r.bytes = append(r.tensors, t), r.bytes+len(data)
	for r.bytes > mostWeights && len(r.tensors) > 1 {
		r.drop()
	}
}

// end lets the system take all.
func (r *recent) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.tensors) > 0 {
		r.drop()
	}
}

func (r *recent) drop() {
	old, _ := r.tensors[0].Bytes()
	r.tensors, r.bytes = r.tensors[1:], r.bytes-len(old)
	mapfile.Forget(old)
}
