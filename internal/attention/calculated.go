package attention

import (
	"cmp"
	"context"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
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

// All lists the attentions of a run, in its order: weights that were recorded, and where they were
// not, those that are calculated of q, k and v until ctx ends. Calculated weights are those with which
// the recorded context comes out of the recorded v; where none do, the attention is not listed. Only
// the ports' golden tensors are looked at.
func All(ctx context.Context, run *diagnose.Run) (out []Weights) {
	own := alone(run)
	at := map[*diagnose.Port]Weights{}
	add := func(p *diagnose.Port, w *Weights) {
		if w != nil {
			at[p], out = *w, append(out, *w)
		}
	}
	for _, p := range own.Ports {
		if !p.IsInput() && (len(p.Golden.Shape()) == 4 || Named(p.Layer, p.Port) || len(own.Ports) == 1) && Recorded(p.Golden) {
			add(p, &Weights{p.Case, p.Step, p.Layer, p.Port, Of(p.Golden, nil)})
		}
	}
	for _, p := range own.Ports {
		if holdsContext(p, out) && ctx.Err() == nil {
			add(p, calculated(ctx, own, p))
		}
	}
	out = nil
	for _, p := range own.Ports {
		if w, ok := at[p]; ok {
			out = append(out, w)
		}
	}
	return out
}

// alone is a run in which the candidate is the reference itself.
func alone(run *diagnose.Run) *diagnose.Run {
	out := &diagnose.Run{Weights: run.Weights, Config: run.Config}
	for _, p := range run.Ports {
		q := *p
		q.Actual, q.Injected, q.Misfit, q.Agrees = p.Golden, nil, nil, true
		out.Ports = append(out.Ports, &q)
	}
	return out
}

// holdsContext reports whether a port may hold the context of an attention of which no weights are
// known.
func holdsContext(p *diagnose.Port, known []Weights) bool {
	if !module.InAttention(p.Layer) || module.QKV(p.Layer) != 0 || module.FusedQKV.Has(p.Layer) || module.IsNorm(p.Layer) ||
		!p.IsFloat() || p.Golden.Len() == 0 || p.Golden.Len() > mostContext {
		return false
	}
	return !slices.ContainsFunc(known, func(w Weights) bool {
		return w.Case == p.Case && w.Step == p.Step && (label.Within(w.Layer, p.Layer) || label.Within(p.Layer, w.Layer))
	})
}

// calculated are the weights with which a port's tensor comes out of q, k and v; nil for another one.
func calculated(ctx context.Context, run *diagnose.Run, p *diagnose.Port) *Weights {
	s := &diagnose.Scene{Run: run, Case: p.Case, Step: p.Step, Layer: p.Layer, Target: p}
	g := rebuild.Of(s.Until(ctx))
	if g == nil {
		return nil
	}
	o, ok := g.Explain(g.Target).(*rebuild.Attention)
	if !ok {
		return nil
	}
	w := o.Weigh(g.With(g.Target, nil))
	if w == nil {
		return nil
	}
	l := layout{batch: o.Sequences, heads: o.Heads, queries: o.Tokens, keys: cmp.Or(o.Keys, o.Tokens)}
	heads := l.figures(func(b, h, t int, into []float64) { copy(into, w.Weights(b, h, t)) })
	return &Weights{Case: p.Case, Step: p.Step, Layer: o.Layer, Heads: heads}
}
