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
)

// Weights are those of one attention in one forward pass.
type Weights struct {
	Case, Step, Layer, Port string // Layer is the attention's; Port is that of recorded weights, "" for calculated ones
	Heads                   []Head
}

// Label is that of recorded weights, or the layer and that they are calculated.
func (w Weights) Label() string {
	if w.Port == "" {
		return w.Layer + " (calculated)"
	}
	return label.Join(w.Layer, w.Port)
}

// In returns the same attention among those of another run with the same labels; nil if it is not
// there.
func (w Weights) In(others []Weights) *Weights {
	at := slices.IndexFunc(others, func(o Weights) bool {
		return o.Case == w.Case && o.Step == w.Step && o.Layer == w.Layer && o.Port == w.Port
	})
	if at < 0 {
		at = slices.IndexFunc(others, func(o Weights) bool {
			return o.Case == w.Case && o.Step == w.Step && (label.Within(o.Layer, w.Layer) || label.Within(w.Layer, o.Layer))
		})
	}
	if at < 0 {
		return nil
	}
	return &others[at]
}

// Program is what the reference ran in a case, with what opens what is no record of it: weights and constants.
type Program struct {
	*program.Program
	Load replay.Load
}

// All lists the attentions of a run, in its order: weights that were recorded, and where they were not, those that the
// program of the case makes of q, k and v until ctx ends. Calculated weights are those with which the recorded context
// comes out of the recorded v; where it does not, the attention is not listed. Only the ports' golden tensors are looked
// at. programs has those of the cases that have one.
func All(ctx context.Context, run *diagnose.Run, programs map[string]Program) (out []Weights) {
	at := map[*diagnose.Port]Weights{}
	for _, p := range run.Ports {
		if !p.IsInput() && (len(p.Golden.Shape()) == 4 || Named(p.Layer, p.Port) || len(run.Ports) == 1) && Recorded(p.Golden) {
			w := Weights{p.Case, p.Step, p.Layer, p.Port, Of(p.Golden, nil)}
			at[p], out = w, append(out, w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		calculated(ctx, run, name, programs[name], func(p *diagnose.Port, w Weights) {
			if !slices.ContainsFunc(out, func(o Weights) bool {
				return o.Case == w.Case && o.Step == w.Step && (label.Within(o.Layer, w.Layer) || label.Within(w.Layer, o.Layer))
			}) {
				at[p], out = w, append(out, w)
			}
		})
	}
	out = nil
	for _, p := range run.Ports {
		if w, ok := at[p]; ok {
			out = append(out, w)
		}
	}
	return out
}

// calculated finds, for each attention of a program, the first port after it, and the weights with which that comes out
// of what was recorded before it.
func calculated(ctx context.Context, run *diagnose.Run, name string, p Program, found func(*diagnose.Port, Weights)) {
	ports := make([]*diagnose.Port, len(p.Ports))
	for i, at := range p.Ports {
		for _, q := range run.Ports {
			if q.Case == name && q.Step == at.Step && q.Layer == at.Layer && q.Port == at.Name && slices.Equal(q.Golden.Shape(), p.Values[at.Value].Shape) {
				ports[i] = q
			}
		}
	}
	load := func(v *program.Value) (*replay.Array, error) {
		if v.Record > 0 {
			return replay.FromTensor(ports[v.Record-1].Golden)
		}
		return p.Load(v)
	}
	seen := map[int]bool{}
	for i, port := range ports {
		if port == nil || !port.IsFloat() || port.Golden.Len() > mostContext || ctx.Err() != nil {
			continue
		}
		piece := p.Piece(i, func(k int) bool { return ports[k] != nil })
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
		has := vec.ReadAll(port.Golden)
		if !(vec.Relative(has, base.Value(piece.Out).Floats()) <= max(port.Floor.RelL2, comesOut)) {
			continue
		}
		for _, w := range edit.AttentionWeights(ctx, base) {
			t, err := w.Array.Tensor()
			if err == nil {
				found(port, Weights{Case: name, Step: port.Step, Layer: w.Layer, Heads: Of(t, nil)})
			}
		}
	}
}
