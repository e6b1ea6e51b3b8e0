package judge

import (
	"errors"
	"sync"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// errNoWeights says why pieces with weights cannot be replayed.
var errNoWeights = errors.New("its weights are not at hand")

// Outside returns what loads weights, constants and inputs of a program. Weights stay in memory up to
// mostWeights bytes, until done: a model is larger, and its pieces take its layers one after the other.
func Outside(p *program.Program, evidence func() (checkpoint.Weights, checkpoint.Config, error)) (load replay.Load, done func()) {
	open := opened(evidence)
	var recent recent
	load = func(v *program.Value) (*replay.Array, error) {
		var t *tensor.Tensor
		var err error
		switch {
		case v.Weight != "":
			if t, err = weight(open, v, p.Aliases); err != nil && v.Buffer != "" {
				t, err = p.Constant(v.Buffer)
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

// opened opens the weights of evidence once; none where there is none.
func opened(evidence func() (checkpoint.Weights, checkpoint.Config, error)) func() (checkpoint.Weights, error) {
	return sync.OnceValues(func() (checkpoint.Weights, error) {
		if evidence == nil {
			return nil, nil
		}
		weights, _, err := evidence()
		return weights, err
	})
}

func weight(open func() (checkpoint.Weights, error), v *program.Value, aliases map[string]string) (*tensor.Tensor, error) {
	weights, err := open()
	switch {
	case err != nil:
		return nil, err
	case len(weights) == 0:
		return nil, errNoWeights
	}
	return weights.Find(v.Weight, v.Shape, aliases)
}

// recent are the tensors that were used last, and are in memory.
type recent struct {
	mu      sync.Mutex
	tensors []*tensor.Tensor
	bytes   int
}

// use notes that a tensor is used, and lets the system take those that were used before.
func (r *recent) use(t *tensor.Tensor) {
	data, lies := t.Bytes()
	if !lies || len(data) == 0 {
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
