package attention

import (
	"context"
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Weights are those of one attention in one forward pass.
type Weights struct {
	Case, Step, Layer, Port string // Layer is the attention's; Port is that of recorded weights, "" for calculated ones
	Heads                   []Head
	at                      int // the port that holds them, or comes after them
}

// Label is that of recorded weights, or the layer and that they are calculated.
func (w Weights) Label() string {
	if w.Port == "" {
		return w.Layer + " (calculated)"
	}
	return label.Join(w.Layer, w.Port)
}

// in returns the same attention among others; nil if it is not there.
func (w Weights) in(others []Weights) *Weights {
	for i, o := range others {
		if o.Case == w.Case && o.Step == w.Step && (label.Within(o.Layer, w.Layer) || label.Within(w.Layer, o.Layer)) {
			return &others[i]
		}
	}
	return nil
}

// Program is what the reference ran in a case, with what opens what is no record of it: weights and constants.
type Program struct {
	*program.Program
	Load replay.Load
}

// Beside lists the attentions of the golden, in its order, and what the candidate has for each, by the labels of the
// golden: the tensor that belongs to recorded weights, whatever it holds, or else what can be calculated of it; nil for
// nothing. Where weights were not recorded, the program of the case makes them of q, k and v until ctx ends: those with
// which the recorded context comes out of the recorded v; where it does not, the attention is not listed. programs has
// those of the cases that have one.
func Beside(ctx context.Context, run *diagnose.Run, programs map[string]Program) (golden []Weights, candidate []*Weights) {
	actual := func(p *diagnose.Port) *tensor.Tensor {
		if !p.IsRecorded() {
			return nil
		}
		return p.Actual
	}
	golden = all(ctx, run, programs, func(p *diagnose.Port) *tensor.Tensor { return p.Golden })
	own := all(ctx, run, programs, actual)
	for _, g := range golden {
		w := g.in(own)
		if t := actual(run.Ports[g.at]); t != nil && g.Port != "" {
			same := g
			w, same.Heads = &same, Of(t)
		}
		candidate = append(candidate, w)
	}
	return golden, candidate
}

// all lists the attentions of a run by what it has for each port; nil for nothing.
func all(ctx context.Context, run *diagnose.Run, programs map[string]Program, has func(p *diagnose.Port) *tensor.Tensor) (out []Weights) {
	for i, p := range run.Ports {
		t := has(p)
		if t != nil && !p.IsInput() && (len(t.Shape()) == 4 || named(p.Layer, p.Port) || len(run.Ports) == 1) && Recorded(t) {
			out = append(out, Weights{p.Case, p.Step, p.Layer, p.Port, Of(t), i})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		for _, w := range calculated(ctx, run, name, programs[name], has) {
			if w.in(out) == nil {
				out = append(out, w)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Weights) int { return a.at - b.at })
	return out
}

// calculated finds, for each attention of a program, the first port after it, and the weights with which that comes out
// of what was recorded before it.
func calculated(ctx context.Context, run *diagnose.Run, name string, p Program, has func(p *diagnose.Port) *tensor.Tensor) (out []Weights) {
	ports, tensors := make([]int, len(p.Ports)), make([]*tensor.Tensor, len(p.Ports))
	for i, at := range p.Ports {
		for k, q := range run.Ports {
			if q.Case == name && q.Step == at.Step && q.Layer == at.Layer && q.Port == at.Name && slices.Equal(q.Golden.Shape(), p.Values[at.Value].Shape) {
				ports[i], tensors[i] = k, has(q)
			}
		}
	}
	load := func(v *program.Value) (*replay.Array, error) {
		if v.Record > 0 {
			return replay.FromTensor(tensors[v.Record-1])
		}
		return p.Load(v)
	}
	seen := map[int]bool{}
	for i, t := range tensors {
		if t == nil || t.Len() > mostContext || ctx.Err() != nil {
			continue
		}
		piece := p.Piece(i, func(k int) bool { return tensors[k] != nil })
		if !slices.ContainsFunc(piece.Ops, edit.Attends) || slices.ContainsFunc(piece.Origin, func(op int) bool { return seen[op] }) {
			continue
		}
		base, err := replay.NewBase(ctx, piece, load, replay.Mode{})
		if err != nil {
			continue
		}
		for _, op := range piece.Origin {
			seen[op] = true
		}
		port := run.Ports[ports[i]]
		if !(vec.Relative(vec.ReadAll(t), base.Value(piece.Out).Floats()) <= max(port.Floor.RelL2, comesOut)) {
			continue
		}
		for _, w := range edit.AttentionWeights(base) {
			if t, err := w.Array.Tensor(); err == nil {
				out = append(out, Weights{Case: name, Step: port.Step, Layer: w.Layer, Heads: Of(t), at: ports[i]})
			}
		}
	}
	return out
}
