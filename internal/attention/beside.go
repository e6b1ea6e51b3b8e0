package attention

import (
	"context"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
)

// Beside lists the attentions of the golden, see [All], and what the candidate has for each, by the labels
// of the golden: the tensor that belongs to recorded weights, whatever it holds, or else what can be
// calculated of it; nil for nothing.
func Beside(ctx context.Context, run *diagnose.Run, programs map[string]Program) (golden []Weights, candidate []*Weights) {
	other := &diagnose.Run{Weights: run.Weights, Config: run.Config}
	for _, p := range run.Ports {
		if p.IsRecorded() {
			q := *p
			q.Golden = p.Actual
			other.Ports = append(other.Ports, &q)
		}
	}
	golden = All(ctx, run, programs)
	own := All(ctx, other, programs)
	for _, g := range golden {
		w := g.In(own)
		i := slices.IndexFunc(run.Ports, func(p *diagnose.Port) bool {
			return p.Case == g.Case && p.Step == g.Step && p.Layer == g.Layer && p.Port == g.Port
		})
		if i >= 0 && run.Ports[i].IsRecorded() {
			w = &Weights{Case: g.Case, Step: g.Step, Layer: g.Layer, Port: g.Port, Heads: Of(run.Ports[i].Actual, nil)}
		}
		candidate = append(candidate, w)
	}
	return golden, candidate
}
