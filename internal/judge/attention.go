package judge

import (
	"context"
	"fmt"

	"github.com/goparity/goparity/internal/attention"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/trace"
)

// Attentions lists the attentions of the golden, see [attention.All], and what the candidate has for
// each, by the labels of the golden: the tensor that belongs to recorded weights, whatever it holds, or
// else what can be calculated of it; nil for nothing.
func (c *Comparison) Attentions(ctx context.Context) (golden []attention.Weights, candidate []*attention.Weights, err error) {
	run := &diagnose.Run{}
	if c.search.Evidence != nil {
		if run.Weights, run.Config, err = c.search.Evidence(); err != nil {
			return nil, nil, fmt.Errorf("weights or config: %w", err)
		}
	}
	ports := map[trace.Key]*diagnose.Port{}
	for _, p := range c.Ports {
		d := p.evidence()
		run.Ports, ports[p.Key] = append(run.Ports, d), d
	}
	golden = attention.All(ctx, run)
	own := attention.All(ctx, candidateOf(run))
	for _, g := range golden {
		w := g.In(own)
		if p := ports[trace.Key{Case: g.Case, Step: g.Step, Layer: g.Layer, Port: g.Port}]; p != nil && p.IsRecorded() {
			w = &attention.Weights{Case: g.Case, Step: g.Step, Layer: g.Layer, Port: g.Port, Heads: attention.Of(p.Actual, nil)}
		}
		candidate = append(candidate, w)
	}
	return golden, candidate, nil
}

// candidateOf is a run whose golden tensors are those that the candidate recorded.
func candidateOf(run *diagnose.Run) *diagnose.Run {
	out := &diagnose.Run{Weights: run.Weights, Config: run.Config}
	for _, p := range run.Ports {
		if p.IsRecorded() {
			q := *p
			q.Golden = p.Actual
			out.Ports = append(out.Ports, &q)
		}
	}
	return out
}
