package piece

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
	var weights checkpoint.Weights
	var config checkpoint.Config
	open := sync.OnceValue(func() (err error) { weights, config, err = e(); return err })
	return func() (checkpoint.Weights, checkpoint.Config, error) {
		err := open()
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
	return load, func() { recent.keep(0) }
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

// recent is the data of the tensors that were used last, and is in memory.
type recent struct {
	mu    sync.Mutex
	data  [][]byte
	bytes int
}

// use notes that a tensor is used, and lets the system take those that were used before.
func (r *recent) use(t *tensor.Tensor) {
	data, _ := t.Bytes()
	r.keep(max(mostWeights, len(data)), data)
}

// keep adds data, and lets the system take the first until no more bytes are left than that.
func (r *recent) keep(bytes int, more ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, data := range more {
		r.data, r.bytes = append(r.data, data), r.bytes+len(data)
	}
	for r.bytes > bytes {
		r.bytes -= len(r.data[0])
		mapfile.Forget(r.data[0])
		r.data = r.data[1:]
	}
}
